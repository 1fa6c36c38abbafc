"""Which request is answered by what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from pinchpoint_infra.services import web_access
from pinchpoint_infra.services.odata import Call, RefusalError
from pinchpoint_infra.services.odata_answer import collection
from pinchpoint_infra.services.web_changes import ChangeLog
from pinchpoint_infra.services.web_files import Files
from pinchpoint_infra.services.web_lists import Lists
from pinchpoint_infra.services.web_people import People
from pinchpoint_infra.services.web_search import Search
from pinchpoint_infra.services.web_store import Store
from pinchpoint_infra.services.web_views import Views

Answer = Callable[[Call], Awaitable[Response]]
Answers = dict[str, Answer]
_LISTS = ("web/lists/getbytitle()", "web/lists/getbyid()", "web/lists()", "web/getlist()")


def answers(store: Store, log: ChangeLog, people: int) -> Answers:
    """The steps of a request (see ``Call``) -> what answers it: all that is not about the site itself.

    Args:
        store: the content database.
        log: its change log.
        people: how many users there are.
    """
    files, users = Files(store), People(store, people)
    lists = Lists(store, files, people)
    return {
        "web/webs": _none,
        "web/roleassignments": web_access.site_access,
        "web/sitegroups": web_access.groups,
        "web/sitegroups/getbyid()": plain(web_access.group),
        "web/sitegroups/getbyname()": plain(web_access.group),
        "web/getchanges": log.changes,
        "site/getchanges": log.changes,
        **_of_lists(lists, Views(store, lists), log),
        **_of_files(lists, files),
        **_of_people(users, Search(store, users)),
    }


def _of_lists(lists: Lists, views: Views, log: ChangeLog) -> Answers:
    found: Answers = {"web/lists": lists.all}
    for name in _LISTS:
        found |= {
            name: lists.one,
            f"{name}/items": lists.items,
            f"{name}/getitems": views.items,
            f"{name}/renderlistdata": views.rendered,
            f"{name}/renderlistdata()": views.rendered,
            f"{name}/renderlistdataasstream": views.streamed,
            f"{name}/roleassignments": lists.access,
            f"{name}/getchanges": log.list_changes,
            f"{name}/getlistitemchangessincetoken": log.items_since,
        }
        for item in (
            f"{name}/items()",
            f"{name}/items/getbyid()",
            f"{name}/items/getbystringid()",
            f"{name}/getitembyid()",
            f"{name}/getitembystringid()",
        ):
            found |= {
                item: lists.item,
                f"{item}/roleassignments": lists.item_access,
                f"{item}/file": plain(lists.item_file),
                f"{item}/file/$value": lists.item_content,
            }
    return found


def _of_files(lists: Lists, files: Files) -> Answers:
    found: Answers = {}
    named = [f"web/getfileby{way}()" for way in ("serverrelativeurl", "serverrelativepath", "id", "url")]
    roots = [f"web/getfolderbyserverrelative{way}()" for way in ("url", "path")]
    roots += [f"{name}/rootfolder" for name in ("web", *_LISTS)]
    for root in roots:
        for folder in (root, f"{root}/folders()", f"{root}/folders/getbyurl()"):
            found |= {
                folder: files.folder,
                f"{folder}/files": files.files,
                f"{folder}/folders": files.folders,
            }
            named += [f"{folder}/files()", f"{folder}/files/getbyurl()"]
    for file in named:
        found |= {
            file: files.file,
            f"{file}/$value": files.file_content,
            f"{file}/listitemallfields": lists.file_item,
        }
    return found | {"web/folders": files.folders}


def _of_people(people: People, search: Search) -> Answers:
    manager = "sp.userprofiles.peoplemanager"
    picker = "sp.ui.applicationpages.clientpeoplepickerwebserviceinterface"
    service = "microsoft.office.server.search.rest.searchservice"
    ways = ("siteusers/getbyid()", "siteusers/getbyemail()", "siteusers/getbyloginname()", "siteusers()")
    return {
        "web/currentuser": plain(people.me),
        "web/siteusers": people.users,
        **{f"web/{way}": plain(people.user) for way in (*ways, "getuserbyid()")},
        "web/ensureuser": people.ensure,
        "web/ensureuser()": people.ensure,
        f"{manager}/getpropertiesfor()": people.profile,
        f"{manager}/getmyproperties": people.my_profile,
        f"{manager}/getuserprofilepropertyfor()": people.profile_property,
        f"{picker}.clientpeoplepickersearchuser": people.suggest,
        "search/query": search.query,
        "search/postquery": search.query,
        f"{service}/query()": search.query,
        f"{service}/postquery": search.query,
    }


def plain(answer: Answer) -> Answer:
    """An answer that heeds ``$select`` alone: other options are refused."""

    async def refusing(call: Call) -> Response:
        call.refuse_options()
        return await answer(call)

    return refusing


async def _none(call: Call) -> Response:
    return collection(call, [])


async def nothing(call: Call) -> Response:
    """Where nothing answers."""
    raise RefusalError(404, f"there is no /_api/{call.steps}")
