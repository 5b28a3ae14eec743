"""Files that the browser keeps: styles, scripts, the icon. Their addresses change with them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_YEAR = "public, max-age=31536000, immutable"


class Assets:
    """The files of `static`, read once. Only what a page uses is served."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files: dict[str, tuple[bytes, str, str]] = {}
        for file in sorted(folder.rglob("*")):
            if file.suffix in _TYPES:
                data = file.read_bytes()
                name = file.relative_to(folder).as_posix()
                self._files[name] = (data, _TYPES[file.suffix], sha256(data).hexdigest()[:16])

    def address(self, name: str) -> str:
        """Where a page finds a file; another content has another address."""
        return f"/static/{name}?v={self._files[name][2]}"

    async def serve(self, request: Request) -> Response:
        """Answer a request for a file."""
        found = self._files.get(str(request.path_params["name"]))
        if found is None:
            return Response("there is no such file\n", 404, media_type="text/plain")
        data, kind, version = found
        tag = f'"{version}"'
        lasting = _YEAR if request.query_params.get("v") == version else "no-cache"
        headers = {"Cache-Control": lasting, "ETag": tag, "X-Content-Type-Options": "nosniff"}
        if request.headers.get("if-none-match") == tag:
            return Response(None, 304, headers)
        return Response(data, 200, headers, kind)
