"""Lists and calls the tools of `bowline mcp`; one JSON document per check on standard output."""

import asyncio
import json
import os
import sys

import jsonschema
from mcp import Client, MCPError, StdioServerParameters

MODE = sys.argv[1]
ORGANIZATION = os.environ["ORGANIZATION"]


def check(name: str, ok: bool, detail: object = "") -> None:
    print(json.dumps({"name": name, "ok": bool(ok), "detail": str(detail)[:2000]}), flush=True)


def server(*args: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=os.environ["BOWLINE"],
        args=["mcp", "--api", os.environ["BASE_URL"], *args],
        env={"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]},
    )


async def tools_of(client: Client) -> dict:
    tools, cursor = {}, None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools.update({tool.name: tool for tool in page.tools})
        cursor = page.next_cursor
        if not cursor:
            return tools


async def reads() -> None:
    async with Client(server(), mode=MODE) as client:
        tools = await tools_of(client)
        check("reading methods are tools", len(tools) > 60 and "iam_list_groups" in tools, sorted(tools))
        hints = [tool.annotations for tool in tools.values()]
        check("they say that they only read", all(hint and hint.read_only_hint for hint in hints))
        for tool in tools.values():
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        check("their schemas are schemas", True)
        empty = [name for name, tool in tools.items() if not tool.description]
        check("all have a description", not empty, empty)
        arguments = {"uidp": {"childrenOf": ORGANIZATION}, "pageSize": 1}
        jsonschema.validate(arguments, tools["iam_list_groups"].input_schema)
        called = await client.call_tool("iam_list_groups", arguments)
        check("a tool returns a page", not called.is_error and "groups" in json.loads(called.content[0].text), called)
        refused = await client.call_tool("iam_get_group", {"uid": "ab" * 20})
        check("a refusal is an error of the tool, with a hint", refused.is_error and "hint: " in refused.content[0].text, refused)
        try:
            await client.call_tool("iam_create_group", {"parent": ORGANIZATION, "group": {"name": "no"}})
            check("what changes something is no tool", False)
        except MCPError as error:
            check("what changes something is no tool", "iam_create_group" in str(error), error)


async def writes() -> None:
    async with Client(server("--allow-writes", "--domains", "iam"), mode=MODE) as client:
        tools = await tools_of(client)
        hint = tools["iam_delete_group"].annotations
        check("deletions are destructive", hint.destructive_hint and not hint.read_only_hint, hint)
        arguments = {"parent": ORGANIZATION, "group": {"name": f"by-{MODE}"}}
        jsonschema.validate(arguments, tools["iam_create_group"].input_schema)
        made = await client.call_tool("iam_create_group", arguments)
        check("writing tools write", not made.is_error, made)
        listed = await client.call_tool("iam_list_groups", {"name": f"by-{MODE}"})
        groups = json.loads(listed.content[0].text)["groups"]
        check("and what they wrote is there", [group["uid"] for group in groups] == [json.loads(made.content[0].text)["uid"]], listed)
        deleted = await client.call_tool("iam_delete_group", {"uid": groups[0]["uid"]})
        check("and can be deleted", not deleted.is_error, deleted)


asyncio.run(reads())
asyncio.run(writes())
