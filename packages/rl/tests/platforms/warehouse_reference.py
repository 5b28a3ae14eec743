"""One step of the robots of one episode, as slowly and plainly as it can be said."""


def drive_slowly(state, choice, held, cells, last, pick):
    """The next state of one episode and its deliveries.

    state: lists `row`, `route`, `at`, `wait`, `waited` as `give` left them.
    """
    robots = [
        {"row": row, "route": route, "at": at, "wait": wait, "waited": waited}
        for row, route, at, wait, waited in zip(*state.values(), strict=True)
    ]
    for robot, chosen in zip(robots, choice, strict=True):
        if robot["row"] >= 0 and robot["route"] < 0:
            robot["route"] = chosen
            if chosen < 0:
                robot["row"] = -1
    way = [
        [c for c in cells[r["row"]][r["route"]] if c >= 0] if r["row"] >= 0 else [] for r in robots
    ]
    stands = {way[w][r["at"]]: w for w, r in enumerate(robots) if way[w] and r["at"] >= 0}
    picks = [w for w, r in enumerate(robots) if way[w] and r["at"] == last[r["row"]][r["route"]]]
    target = {w: way[w][r["at"] + 1] for w, r in enumerate(robots) if way[w] and w not in picks}
    going = _going(target, [w for w in target if held[w]], stands, [r["waited"] for r in robots])
    delivered = 0
    for w, robot in enumerate(robots):
        waited, robot["waited"] = robot["waited"], 0
        if w in picks:
            robot["wait"] -= 1
        elif w in going:
            robot["wait"] = 0
            robot["at"] += 1
            if robot["at"] == len(way[w]) - 1 and robot["row"] % 2 == 0:
                robot["wait"] = pick
            elif robot["at"] == len(way[w]) - 1:
                delivered += 1
                robot.update(row=-1, route=-1, at=-1)
        elif w in target:
            robot["wait"], robot["waited"] = 0, waited + 1
        else:
            robot["wait"] = 0
    return {name: [r[name] for r in robots] for name in state}, delivered


def _going(target, held, stands, waited):
    """Who moves: first in its cell, and the cell is free or left by one who moves."""
    free_to_go = [w for w in target if w not in held]
    first = {}
    for cell in set(target.values()):
        asking = [w for w in free_to_go if target[w] == cell]
        rings = [w for w in asking if _in_ring(w, target, held, stands)]
        if asking:
            first[cell] = min(rings or asking, key=lambda w: (-waited[w], w))
    going = set(first.values())
    while True:
        stuck = {w for w in going if target[w] in stands and stands[target[w]] not in going}
        if not stuck:
            return going
        going -= stuck


def _in_ring(start, target, held, stands):
    at = start
    for _ in range(len(target)):
        if at not in target or at in held:
            return False
        at = stands.get(target[at])
        if at == start:
            return True
    return False
