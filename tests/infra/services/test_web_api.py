"""What clients of SharePoint's REST API ask the web tier for, beyond a crawl's own requests."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from infra.services.serving import Service
from infra.services.site import BEARER, MINIMAL, TOKEN, VERBOSE
from office365.runtime.auth.token_response import TokenResponse
from office365.sharepoint.changes.query import ChangeQuery
from office365.sharepoint.client_context import ClientContext

DEPARTMENTS = {"Sales", "Finance", "Research", "Legal", "Operations", "Marketing", "Support", "Production"}
LISTS = "/_api/web/lists"
MANY = f"{LISTS}/getbytitle('many')"


def got(site: Service, target: str, headers: dict[str, str] = BEARER) -> Any:
    """The JSON at ``target``; what is no part of a URL is quoted."""
    answer = site.get(quote(target, safe="/?&=$'(),@:;%"), **headers)
    assert answer.status == 200, answer.data
    return answer.json()


def refused(site: Service, target: str) -> str:
    """The sentence with which a request is refused as a wrong one."""
    answer = site.get(quote(target, safe="/?&=$'(),@:;%"), **BEARER)
    assert answer.status == 400, answer.data
    sentence: str = answer.json()["odata.error"]["message"]["value"]
    assert TOKEN not in sentence
    return sentence


def test_minimal_metadata_says_what_and_where_an_object_is(site: Service) -> None:
    """JSON without more said is the form between: each object with type and address, which answers."""
    item = got(site, f"{MANY}/items?$top=1", MINIMAL)["value"][0]
    assert item["odata.type"] == "SP.ListItem"
    again = got(site, urlsplit(item["odata.id"]).path, MINIMAL)
    assert (again["Id"], again["odata.editLink"]) == (item["Id"], item["odata.editLink"])
    assert again["odata.metadata"].startswith(f"{site.url}/_api/$metadata")
    for target in (MANY, f"{MANY}/items({item['Id']})/file", "/_api/web", "/_api/web/currentuser"):
        found = got(site, target, MINIMAL)
        assert got(site, urlsplit(found["odata.id"]).path, MINIMAL) == found
    verbose = got(site, MANY, VERBOSE)["d"]
    assert verbose["__metadata"]["type"] == "SP.List"
    assert got(site, urlsplit(verbose["__metadata"]["uri"]).path, VERBOSE)["d"] == verbose
    assert not any(name.startswith(("odata", "__")) for name in got(site, MANY))


def test_selecting_reaches_into_what_is_expanded(site: Service) -> None:
    """``File/Name`` is that field of the file alone; what is expanded is there in each form."""
    target = f"{MANY}/items?$select=Id,File/Name,Author/Title,ParentList/RootFolder/Name"
    target += "&$expand=File,Author,ParentList/RootFolder&$top=1"
    (item,) = got(site, target)["value"]
    assert item["File"] == {"Name": "000.txt"}
    assert set(item["Author"]) == {"Title"}
    assert item["ParentList"] == {"RootFolder": {"Name": "many"}}
    (verbose,) = got(site, target, VERBOSE)["d"]["results"]
    assert verbose["File"]["Name"] == "000.txt"
    assert set(verbose["File"]) == {"__metadata", "Name"}
    author = got(site, f"{MANY}/items({item['Id']})?$expand=Author")["Author"]
    assert got(site, f"/_api/web/getuserbyid({author['Id']})") == author


def test_lists_by_every_name_and_by_filter(site: Service) -> None:
    """By title in any case, GUID, address; chosen, sorted and paged as items are."""
    (one,) = got(site, f"{LISTS}?$filter=Title eq 'many' and Hidden eq false")["value"]
    for target in (
        f"{LISTS}/getById('{one['Id']}')",
        f"{LISTS}(guid'{one['Id'].upper()}')",
        f"{LISTS}('{one['Id']}')",
        "/_api/web/GetList('/Sites/Corpus/many')",
        "/_api/web/getList(@l)?@l='/sites/corpus/many'",
    ):
        assert got(site, target) == one
        if "@" not in target:
            assert len(got(site, f"{target}/items?$top=3")["value"]) == 3
    assert got(site, f"{LISTS}?$filter=Id eq guid'{one['Id']}'")["value"] == [one]
    titles: list[str] = []
    following: str | None = f"{LISTS}?$orderby=ItemCount desc,Title&$top=2&$select=Title"
    while following:
        page = got(site, following)
        titles += [each["Title"] for each in page["value"]]
        following = page.get("odata.nextLink", "").removeprefix(site.url)
    assert titles == ["many", "case", "it's #1 50%", "Documents", "deep"]
    parents = got(site, f"{MANY}?$expand=RootFolder,ParentWeb")
    assert parents["RootFolder"]["ServerRelativeUrl"] == "/sites/corpus/many"
    assert parents["ParentWeb"]["Url"] == site.url


def test_items_page_back_and_by_any_field(site: Service) -> None:
    """``PagedPrev`` gives the page before; a page that is sorted follows on; a GUID or a size chooses."""
    first = got(site, f"{MANY}/items?$top=10")["value"]
    token = quote(f"Paged=TRUE&PagedPrev=TRUE&p_ID={first[-1]['Id'] + 1}")
    before = site.get(f"{MANY}/items?$top=4&$skiptoken={token}", **BEARER).json()
    assert [each["Id"] for each in before["value"]] == [each["Id"] for each in first[-4:]]
    assert "odata.nextLink" not in before
    names: list[str] = []
    following: str | None = f"{MANY}/items?$orderby=FileLeafRef desc&$top=10&$select=FileLeafRef"
    while following:
        page = got(site, following)
        names += [each["FileLeafRef"] for each in page["value"]]
        following = page.get("odata.nextLink", "").removeprefix(site.url)
    assert names == [f"{number:03}.txt" for number in range(24, -1, -1)]
    chosen = got(site, f"{MANY}/items?$filter=GUID eq guid'{first[3]['GUID']}'")["value"]
    assert [each["Id"] for each in chosen] == [first[3]["Id"]]
    large = got(site, f"{MANY}/items?$filter=File_x0020_Size ge 9 and startswith(Title,'02')")["value"]
    assert [each["Title"] for each in large] == [f"02{digit}.txt" for digit in range(5)]
    odd = "substringof('9',Title) eq true and startswith(Title,'00') eq false and Title ne null"
    assert [each["Title"] for each in got(site, f"{MANY}/items?$filter={odd}")["value"]] == ["019.txt"]


def test_folders_hold_files_and_folders(site: Service) -> None:
    """From the site down to a file's bytes, by every way to get there."""
    root = "/_api/web/getfolderbyserverrelativepath(decodedurl='/sites/corpus')"
    below = [each["Name"] for each in got(site, f"{root}/folders?$orderby=Name")["value"]]
    assert sorted(below) == sorted(["Documents", "case", "deep", "it's #1 50%", "many"])
    inner = got(
        site,
        f"{root}/folders('it''s #1 50%')?$expand=Folders,Files".replace("#", "%23").replace("50%", "50%25"),
    )
    assert [each["Name"] for each in inner["Folders"]] == ["d''e"]
    assert len(inner["Files"]) == 4
    assert all("/" not in each["Name"] for each in inner["Files"])
    for target in (
        "/_api/web/getfolderbyserverrelativeurl('/Sites/Corpus/MANY')/files('007.txt')/$value",
        "/_api/web/getfolderbyserverrelativeurl('/sites/corpus/many/')/files/getbyurl('007.txt')/$value",
        f"{MANY}/rootfolder/files('007.txt')/$value",
        "/_api/web/rootfolder/folders('many')/files('007.txt')/$value",
        f"/_api/web/getfilebyurl('{site.url}/sites/corpus/many/007.txt')/$value",
    ):
        answer = site.get(target, **BEARER)
        assert (answer.status, answer.data) == (200, b"number 7"), target
    files = got(site, f"{MANY}/rootfolder/files?$filter=Name eq '007.txt'")["value"]
    assert [each["ServerRelativeUrl"] for each in files] == ["/sites/corpus/many/007.txt"]
    assert got(site, f"{MANY}/rootfolder/files?$top=3&$skip=3")["value"][0]["Name"] == "003.txt"
    assert site.get(f"{MANY}/rootfolder/folders('none')", **BEARER).status == 404


def test_people_and_groups(site: Service) -> None:
    """A user by number, address and name; the groups; a property of a profile."""
    user = got(site, "/_api/web/siteusers/getbyid(103)")
    for target in (
        f"/_api/web/siteusers/getbyemail('{user['Email']}')",
        "/_api/web/siteusers('i:0%23.w|corp\\user00003')",
        "/_api/web/siteusers(@v)?@v='i%3A0%23.w%7Ccorp%5Cuser00003'",
    ):
        assert got(site, target) == user
    chosen = got(site, "/_api/web/siteusers?$filter=Id le 103 and PrincipalType eq 1&$orderby=Id desc")[
        "value"
    ]
    assert [each["Id"] for each in chosen] == [103, 102, 101]
    page = got(site, "/_api/web/siteusers?$top=200&$select=Id")
    following = got(site, page["odata.nextLink"].removeprefix(site.url))
    assert following["value"][0] == {"Id": 301}
    groups = got(site, "/_api/web/sitegroups")["value"]
    assert got(site, f"/_api/web/sitegroups/getbyid({groups[0]['Id']})") == groups[0]
    named = "accountname=@v,propertyname='Department'"
    manager = "/_api/SP.UserProfiles.PeopleManager"
    account = "@v='corp\\user00003'"
    profile = got(site, f"{manager}/getpropertiesfor(@v)?{account}")
    properties = {each["Key"]: each["Value"] for each in profile["UserProfileProperties"]}
    found = got(site, f"{manager}/getuserprofilepropertyfor({named})?{account}")
    assert found == {"value": properties["Department"]}


def test_who_may_do_what(site: Service) -> None:
    """Of the site, a list, an item of its own access list, and expanded in the item."""
    owners = got(site, "/_api/web/roleassignments")["value"][0]
    assert owners["Member"]["Title"] == "Corpus Owners"
    assert owners["RoleDefinitionBindings"] == [{"Id": 1073741829, "Name": "Full Control"}]
    items = got(site, f"{MANY}/items?$expand=RoleAssignments")["value"]
    own = next(each for each in items if each["HasUniqueRoleAssignments"])
    assert own["RoleAssignments"] == got(site, f"{MANY}/items({own['Id']})/roleassignments")["value"]
    assert [each["Member"]["PrincipalType"] for each in own["RoleAssignments"]] == [8, 1]
    person = own["RoleAssignments"][1]["Member"]
    assert got(site, f"/_api/web/getuserbyid({person['Id']})") == person


@pytest.mark.parametrize(
    ("target", "word"),
    [
        (f"{MANY}/items?$expand=Versions", "versions"),
        (f"{MANY}/items?$skip=3", "$skip"),
        (f"{LISTS}?$filter=Nothing eq 1", "nothing"),
        (f"{LISTS}?$skiptoken=3", "$skiptoken"),
        (f"{MANY}?$top=3", "$top"),
        ("/_api/web?$expand=Lists", "$expand"),
        ("/_api/web/currentuser?$filter=Id eq 1", "$filter"),
        ("/_api/web/webs?$top=1", "$top"),
        (f"{MANY}/roleassignments?$expand=Groups", "groups"),
        ("/_api/web/roleassignments?$orderby=Id", "$orderby"),
        (f"{MANY}/items?$inlinecount=allpages", "$inlinecount"),
        (f"{MANY}/items?$select=Id,Nothing", "nothing"),
        (f"{MANY}/items?$select=Id,File/Name", "file"),
        (f"{MANY}/items?$filter=Title eq many", "a value"),
        (f"{MANY}/items?$filter=Id gt null", "a value"),
    ],
)
def test_an_option_nobody_heeds_is_refused(site: Service, target: str, word: str) -> None:
    """Passed over in silence it would give a wrong answer; the sentence names what is heeded."""
    assert word in refused(site, target)


def test_the_python_librarys_objects(site: Service) -> None:
    """The same by a client that is not ours, in its own words: lists, items, files, people."""
    context = ClientContext(site.url).with_access_token(lambda: TokenResponse(TOKEN, "Bearer"))
    web, many = context.web, context.web.lists.get_by_title("many")
    chosen = many.items.filter("startswith(Title,'00')").get()
    changes = many.get_changes(ChangeQuery(Item=True))
    folder = web.get_folder_by_server_relative_url("/sites/corpus/case").get()
    files = folder.files.get()
    item = web.get_file_by_server_relative_url("/sites/corpus/case/empty").listItemAllFields.get()
    roles = many.role_assignments.expand(["Member", "RoleDefinitionBindings"]).get()
    user = web.site_users.get_by_id(104).get()
    same = web.site_users.get_by_email("user00004@corp.example").get()
    groups = web.site_groups.get()
    first = got(site, f"{MANY}/items?$top=1")["value"][0]["Id"]
    one = many.items.get_by_string_id(str(first)).get()
    department = context.people_manager.get_user_profile_property_for("corp\\user00004", "Department")
    context.execute_query()
    assert [each.properties["FileLeafRef"] for each in chosen] == [f"00{digit}.txt" for digit in range(10)]
    assert len(changes) == 0
    assert folder.properties["Name"] == "case"
    assert len(files) == 5
    assert item.properties["FileRef"] == "/sites/corpus/case/empty"
    assert len(roles) == 3
    assert user.login_name == same.login_name == "i:0#.w|corp\\user00004"
    assert {each.properties["Title"] for each in groups} >= {"Corpus Owners"}
    assert one.properties["Id"] == first
    assert department.value in DEPARTMENTS
