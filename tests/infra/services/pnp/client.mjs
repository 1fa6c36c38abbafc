// Asks the site SITE, with the bearer token TOKEN, by @pnp/sp for what its users ask; prints one JSON object:
// name -> what came back, or {"error": ...}. Nothing here knows what the right answer is.
import { spfi, DefaultHeaders, DefaultInit } from "@pnp/sp";
import { BearerToken, BrowserFetchWithRetry, DefaultParse, InjectHeaders } from "@pnp/queryable";
import "@pnp/sp/webs/index.js";
import "@pnp/sp/sites/index.js";
import "@pnp/sp/lists/index.js";
import "@pnp/sp/items/index.js";
import "@pnp/sp/files/index.js";
import "@pnp/sp/folders/index.js";
import "@pnp/sp/security/index.js";
import "@pnp/sp/site-users/index.js";
import "@pnp/sp/site-groups/index.js";
import "@pnp/sp/profiles/index.js";

const { SITE, TOKEN } = process.env;
const absolute = (instance) => {
    instance.on.pre.prepend(async (url, init, result) => [new URL(url, SITE).toString(), init, result]);
    return instance;
};
const behaviours = [DefaultHeaders(), DefaultInit(), BrowserFetchWithRetry(), DefaultParse(), BearerToken(TOKEN)];
const sp = spfi(SITE).using(absolute, ...behaviours);
const verbose = spfi(SITE).using(absolute, ...behaviours, InjectHeaders({ Accept: "application/json;odata=verbose" }));
const many = sp.web.lists.getByTitle("many");
const asked = {};

asked.web = () => sp.web.select("Title", "Url")();
asked.site = () => sp.site.select("Id", "Url")();
asked.lists = () => sp.web.lists.select("Title", "ItemCount").filter("Hidden eq false").orderBy("Title")();
asked.odd_list = () => sp.web.lists.getByTitle("it's #1 50%").select("Title", "ItemCount")();
asked.list_by_id = async () => sp.web.lists.getById((await many.select("Id")()).Id).expand("RootFolder")();
asked.list_by_url = () => sp.web.getList("/sites/corpus/many").select("Title")();
asked.parents = () => many.getParentInfos();

asked.items = () => many.items.select("Id", "FileLeafRef", "File/Length").expand("File")
    .filter("startswith(FileLeafRef,'01')").orderBy("FileLeafRef", false).top(4)();
asked.all_items = async () => {
    const names = [];
    for await (const page of many.items.select("FileLeafRef").top(10)) {
        names.push(page.map((item) => item.FileLeafRef));
    }
    return names;
};
asked.verbose_items = () => verbose.web.lists.getByTitle("many").items.select("FileLeafRef").top(2)();
asked.item = async () => {
    const [first] = await many.items.top(1)();
    return many.items.getById(first.Id).select("Title", "Author/Title").expand("Author")();
};
asked.roles = () => many.roleAssignments.expand("Member", "RoleDefinitionBindings")();
asked.changes = async () => {
    const token = (await sp.site.select("CurrentChangeToken")()).CurrentChangeToken;
    return { token, list: await many.getChanges({ Item: true, Add: true, ChangeTokenStart: token }) };
};

const path = "/sites/corpus/case/page.html";
asked.file = () => sp.web.getFileByServerRelativePath(path).select("Name", "Length")();
asked.text = () => sp.web.getFileByServerRelativePath(path).getText();
asked.bytes = async () => {
    const found = await sp.web.getFileByServerRelativePath("/sites/corpus/case/page.gz").getBuffer();
    return Buffer.from(found).toString("base64");
};
asked.odd_file = () => sp.web.getFileByServerRelativePath("/sites/corpus/it's #1 50%/d''e/(x')y).txt").getText();
asked.file_by_id = async () => {
    const { UniqueId } = await sp.web.getFileByServerRelativePath(path).select("UniqueId")();
    return sp.web.getFileById(UniqueId).getText();
};
asked.item_of_file = async () => {
    const item = await sp.web.getFileByServerRelativePath(path).getItem();
    return item.select("FileRef")();
};
asked.folder = () => sp.web.getFolderByServerRelativePath("/sites/corpus/case").expand("Files", "Folders")();
asked.files = () => sp.web.getFolderByServerRelativePath("/sites/corpus/many").files.select("Name").top(3)();
asked.folders = () => sp.web.getFolderByServerRelativePath("/sites/corpus/it's #1 50%").folders.select("Name")();
asked.exists = () => sp.web.getFileByServerRelativePath("/sites/corpus/none").exists();

asked.me = () => sp.web.currentUser();
asked.users = () => sp.web.siteUsers.select("Id", "Title").top(3)();
asked.user = () => sp.web.siteUsers.getById(104)();
asked.by_mail = () => sp.web.siteUsers.getByEmail("user00004@corp.example")();
asked.by_login = () => sp.web.siteUsers.getByLoginName("i:0#.w|corp\\user00004")();
asked.ensured = () => sp.web.ensureUser("corp\\user00004");
asked.groups = () => sp.web.siteGroups.select("Title")();
asked.profile = () => sp.profiles.getPropertiesFor("i:0#.w|corp\\user00004");
asked.my_profile = () => sp.profiles.myProperties.select("AccountName")();
asked.property = () => sp.profiles.getUserProfilePropertyFor("i:0#.w|corp\\user00004", "Department");
asked.missing = () => sp.web.lists.getByTitle("none")();

const told = {};
for (const [name, ask] of Object.entries(asked)) {
    try {
        told[name] = await ask();
    } catch (error) {
        told[name] = { error: String(error.message ?? error), status: error.status ?? null };
    }
}
console.log(JSON.stringify(told));
