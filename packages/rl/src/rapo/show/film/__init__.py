"""Films of replay: one episode under `P0` beside the same episode under RAPO, as GIF or MP4.

- panels, scene: a graph or a platform's picture; both halves of a frame and the curves below
- palette, encode: the colours of a GIF; `film`, which writes a file whole or not at all
- subject: the environment and the policy that `rapo watch` films
"""

from rapo.show.film.encode import film
from rapo.show.record import Recording, record

__all__ = ["Recording", "film", "record"]
