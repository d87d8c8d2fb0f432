import pytest
pytestmark = pytest.mark.anyio

async def test_all(world, http, anonymous):
    for m, p in [("GET","/health"),("GET","/v1/notes"),("GET","/v1/notes/a%2Fb"),("HEAD","/v1/notes/a"),("GET","/v1/subscribers/issue-from-inventory/packages"),("DELETE","/v1/subscribers/issue-from-inventory/packages"),("PUT","/v1/notes"),("GET","/nope"),("GET","/v1/broken"),("GET","/v1/picture"),("GET","/v1/misspelt"),("GET","/v1/notes/%zz")]:
        r = await http.request(m, p)
        print(m, p, r.status_code, dict(r.headers), r.text)
    r = await http.post("/v1/notes", json={"name":"x"}); print(r.status_code, r.text, dict(r.headers))
    r = await anonymous.post("/v1/notes", json={"name":"x"}); print(r.status_code, r.text, dict(r.headers))
    for l in world.lines: print(l)
    print(world.faults)
