"""Who may call what: one line for each named address of the site.

Columns: visitor, annotator, reviewer, admin.

    .   allowed (the answer is no refusal: a page, a redirect, a complaint about the input)
    L   sent to the log-in page
    A   401: not signed in (images and API)
    F   403: signed in, but not for this
    N   404: as if it were not there

Logging out leads to the log-in page; numbers for machines, invitations, entry links and the
platform's calls need a key that nobody here has; the addresses of the organisation's sign-in
(`accounts:oidc…`) are there only where one is set up.  The release of the test is private.

`tests/test_role_matrix.py` calls every address as each of the four and fails for an address
that has no line here.  A line with `POST` is called by POST.
"""

from __future__ import annotations

ROLES = ("visitor", "annotator", "reviewer", "admin")

TABLE = """
home                              GET   . . . .
set_language                      POST  . . . .

accounts:login                    GET   . . . .
accounts:logout                   POST  L L L L
accounts:csrf                     GET   . . . .
accounts:profile                  GET   L . . .
accounts:shortcuts                POST  L . . .
accounts:password                 GET   L . . .
accounts:oidc                     GET   N N N N
accounts:oidc-callback            GET   N N N N
accounts:oidc-logout              GET   N N N N

operations:healthz                GET   . . . .
operations:readyz                 GET   . . . .
operations:metrics                GET   A A A A
operations:person                 GET   L F F .
operations:person-export          POST  L F F .
operations:person-pseudonymise    POST  L F F .

candidates:browse                 GET   L F . .
candidates:of_pair                GET   L F . .
candidates:detail                 GET   L F . .
candidates:original               GET   L F . .
candidates:display                GET   A . . .
candidates:preview                GET   A . . .

annotation:campaigns              GET   L . . .
annotation:judge                  GET   L . . .
annotation:consent                GET   L . . .
annotation:decline                POST  L . . .
annotation:guideline              GET   L . . .
annotation:end                    GET   L . . .
annotation:me                     GET   L . . .
annotation:join                   GET   F F F F
annotation:enter-study            GET   F F F F
annotation:study-webhook          POST  F F F F
annotation:manage                 GET   L F F .
annotation:manage-new             GET   L F F .
annotation:manage-texts           GET   L F F .
annotation:manage-detail          GET   L F F .
annotation:manage-edit            GET   L F F .
annotation:manage-state           POST  L F F .
annotation:manage-invite          POST  L F F .
annotation:manage-study           POST  L F F .
annotation:manage-person          POST  L F F .

prompts:list                      GET   L F . .
prompts:new                       GET   L F F .
prompts:export                    GET   L F . .
prompts:pair                      GET   L F . .
prompts:edit                      GET   L F F .
prompts:retire                    POST  L F F .
prompts:reinstate                 POST  L F F .

agreement:overview                GET   L F . .
agreement:report                  GET   L F . .
agreement:annotators              GET   L F F .
agreement:annotator               GET   L F F .
agreement:set_aside               GET   L F F .
agreement:rules                   GET   L F . .
agreement:images                  GET   L F . .
agreement:history                 GET   L F . .
agreement:log                     GET   L F . .
agreement:csv                     GET   L F N .
agreement:review                  GET   L F . .
agreement:bulk                    GET   L F . .
agreement:policy                  POST  L F F .
agreement:withdraw                POST  L F . .
agreement:decide                  POST  L F . .
agreement:send_back               POST  L F . .
agreement:defective               POST  L F . .
agreement:reveal                  POST  L F . .

releases:list                     GET   . . . .
releases:new                      GET   L F F .
releases:freezes                  GET   L F F .
releases:compare                  GET   . . . .
releases:detail                   GET   N N . .
releases:export                   POST  L F F .
releases:exports                  GET   N N . .
releases:download                 GET   N N . .
releases:image                    GET   N N . .
releases:citation                 GET   N N . .
releases:visibility               POST  L F F .
releases:withdraw                 POST  L F F .

benchmark:leaderboard             GET   . . . .
benchmark:compare                 GET   . . . .
benchmark:runs                    GET   L F . .
benchmark:download                GET   . . . .
benchmark:metric                  GET   . . . .
benchmark:image                   GET   . . . .

generation:status                 GET   L F F .
generation:live                   GET   L F F .
generation:retry                  POST  L F F .

api-schema                        GET   A . . .
api-campaigns                     GET   A . . .
api-releases                      GET   . . . .
api-release                       GET   N N . .
api-release-archive               GET   N N . .
api-prompts                       GET   A F . .
api-prompts-check                 POST  A F . .
api-leaderboard                   GET   . . . .
api-leaderboard-releases          GET   . . . .
api-leaderboard-metric            GET   . . . .

annotation-api:session            GET   A . . .
annotation-api:claim              POST  A . . .
annotation-api:answers            POST  A . . .
annotation-api:release            POST  A . . .
annotation-api:skip               POST  A . . .
annotation-api:flag               POST  A . . .
annotation-api:history            GET   A . . .
annotation-api:reconcile          POST  A . . .

api-overview                      GET   A F . .
api-agreement                     GET   A F . .
api-pairs                         GET   A F . .
api-rules                         GET   A F . .
api-annotators                    GET   A F F .
api-annotator                     GET   A F F .
api-effect                        GET   A F F .
api-consensus                     GET   A F . .
api-decision                      POST  A F . .
"""


def lines() -> dict[str, tuple[str, list[str]]]:
    """The table by name of the address: method and the four signs."""
    found = {}
    for line in TABLE.split("\n"):
        if line.strip():
            name, method, *signs = line.split()
            found[name] = (method, signs)
    return found
