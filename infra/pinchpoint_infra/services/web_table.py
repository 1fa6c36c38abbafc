"""The table of requests and their handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from pinchpoint_infra.services import web_access
from pinchpoint_infra.services.odata import Call, RefusalError, Tree
from pinchpoint_infra.services.odata_answer import collection
from pinchpoint_infra.services.web_changes import ChangeLog
from pinchpoint_infra.services.web_files import OF_A_FOLDER, WebFiles
from pinchpoint_infra.services.web_lists import OF_AN_ITEM, PARENTS, Lists
from pinchpoint_infra.services.web_people import People
from pinchpoint_infra.services.web_store import ContentStore

Answer = Callable[[Call], Awaitable[Response]]
Answers = dict[str, Answer]
_OF_ACCESS: Tree = {"member": {}, "roledefinitionbindings": {}}
_LISTS = ("web/lists/getbytitle()", "web/lists/getbyid()", "web/lists()", "web/getlist()")


def answers(store: ContentStore, log: ChangeLog, people: int) -> Answers:
    """The steps of a request (see ``Call``) -> what answers it: all that is not about the site itself.

    Args:
        store: the content database.
        log: its change log.
        people: how many users there are.
    """
    files = WebFiles(store)
    lists = Lists(store, files, people)
    return {
        "web/webs": plain(_none),
        "web/roleassignments": plain(web_access.site_access, _OF_ACCESS),
        "web/sitegroups": plain(web_access.groups),
        "web/sitegroups/getbyid()": plain(web_access.group),
        "web/sitegroups/getbyname()": plain(web_access.group),
        "web/getchanges": plain(log.changes),
        "site/getchanges": plain(log.changes),
        **_of_lists(lists, log),
        **_of_files(lists, files),
        **_of_people(People(store, people)),
    }


def _of_lists(lists: Lists, log: ChangeLog) -> Answers:
    found: Answers = {"web/lists": lists.all}
    for name in _LISTS:
        found |= {
            name: plain(lists.one, PARENTS),
            f"{name}/items": lists.items,
            f"{name}/roleassignments": plain(lists.access, _OF_ACCESS),
            f"{name}/getchanges": plain(log.list_changes),
        }
        for item in (
            f"{name}/items()",
            f"{name}/items/getbyid()",
            f"{name}/items/getbystringid()",
            f"{name}/getitembyid()",
            f"{name}/getitembystringid()",
        ):
            found |= {
                item: plain(lists.item, OF_AN_ITEM),
                f"{item}/roleassignments": plain(lists.item_access, _OF_ACCESS),
                f"{item}/file": plain(lists.item_file),
                f"{item}/file/$value": lists.item_content,
            }
    return found


def _of_files(lists: Lists, files: WebFiles) -> Answers:
    found: Answers = {}
    named = [f"web/getfileby{way}()" for way in ("serverrelativeurl", "serverrelativepath", "id", "url")]
    roots = [f"web/getfolderbyserverrelative{way}()" for way in ("url", "path")]
    roots += [f"{name}/rootfolder" for name in ("web", *_LISTS)]
    for root in roots:
        for folder in (root, f"{root}/folders()", f"{root}/folders/getbyurl()"):
            found |= {
                folder: plain(files.folder, OF_A_FOLDER),
                f"{folder}/files": files.files,
                f"{folder}/folders": files.folders,
            }
            named += [f"{folder}/files()", f"{folder}/files/getbyurl()"]
    for file in named:
        found |= {
            file: plain(files.file),
            f"{file}/$value": files.file_content,
            f"{file}/listitemallfields": plain(lists.file_item, OF_AN_ITEM),
        }
    return found | {"web/folders": files.folders}


def _of_people(people: People) -> Answers:
    manager = "sp.userprofiles.peoplemanager"
    ways = ("siteusers/getbyid()", "siteusers/getbyemail()", "siteusers/getbyloginname()", "siteusers()")
    return {
        "web/currentuser": plain(people.me),
        "web/siteusers": people.users,
        **{f"web/{way}": plain(people.user) for way in (*ways, "getuserbyid()")},
        "web/ensureuser": plain(people.ensure),
        "web/ensureuser()": plain(people.ensure),
        f"{manager}/getpropertiesfor()": plain(people.profile),
        f"{manager}/getmyproperties": plain(people.my_profile),
        f"{manager}/getuserprofilepropertyfor()": plain(people.profile_property),
    }


def plain(answer: Answer, expandable: Tree | None = None) -> Answer:
    """An answer that heeds ``$select``, and ``$expand`` of what can be: other options are refused."""

    async def refusing(call: Call) -> Response:
        call.refuse_options(*(() if expandable is None else ("$expand",)))
        call.allow_expand(expandable or {})
        return await answer(call)

    return refusing


async def _none(call: Call) -> Response:
    return collection(call, [])


async def nothing(call: Call) -> Response:
    """Where nothing answers."""
    raise RefusalError(404, f"there is no /_api/{call.steps}")
