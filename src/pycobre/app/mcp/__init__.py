"""An MCP server: assistants and other programs ask about cases and runs below one directory.

serve         standard input and output, or HTTP: token, Host and Origin checks
server        the server, its errors as documents          documents   errors and answers as JSON
tools         the tools          resources   by address         prompts   what planners do every month
call_records  what the server's own tools answer
limits        how much a client may ask for
pool          the processes that answer, seen from the server
worker        the main program of such a process
desk          where it answers: the folder, what is allowed
folder        the root: every path from outside is resolved here
case_calls · run_calls · result_calls · view_calls   what can be asked, one function per tool
run_keeper    the runs that the server started
run_process   the main program of such a run

The server's process reads no study and solves nothing. It needs the package `mcp` (extra `mcp`), which only `serve`,
`server`, `tools`, `resources` and `prompts` import.
"""
