#!/usr/bin/env python3
"""An adapter of rv-conformance(7) as one writes it in ten minutes: subprocess.run and a temporary
directory.  It declares nothing, and fails the checks that rv-conformance(7) lists for it."""
import json
import os
import subprocess
import sys
import tempfile


def dispatch(config, request):
    ctx = request["ctx"]
    spec = request.get("spec", {})
    argv = [spec["command"]] if "command" in spec else [config["command"], *config.get("args", [])]
    argv += spec.get("args", [])
    env = {name: os.environ[name] for name in config.get("allowEnv", []) if name in os.environ}
    env |= {"RULVAR_TOOL": request["tool"], "RULVAR_RUN_ID": ctx["runId"], "RULVAR_IDEMPOTENCY_KEY": ctx["idempotencyKey"]}
    line = json.dumps({"tool": request["tool"], "args": request["args"], "idempotencyKey": ctx["idempotencyKey"]})
    with tempfile.TemporaryDirectory(dir=config.get("workdirBase")) as workdir:
        try:
            done = subprocess.run(argv, input=line + "\n", capture_output=True, text=True, cwd=workdir, env=env,
                                  timeout=config["timeoutMs"] / 1000)
        except subprocess.TimeoutExpired:
            return "timeout", "no result in time"
        except OSError as error:
            return "spawn", str(error)
    if done.returncode != 0:
        return "exit", f"status {done.returncode}: {done.stderr[-500:]}"
    if len(done.stdout) > config["maxOutputBytes"]:
        return "output-cap", "too much output"
    try:
        return None, json.loads(done.stdout) if done.stdout.strip() else None
    except ValueError as error:
        return "protocol", str(error)


def main():
    if sys.argv[1:] == ["--capabilities"]:
        print(json.dumps({"name": "naive.py", "capabilities": []}))
        return
    line = json.loads(sys.stdin.read())
    request = line["request"]
    code, value = dispatch(line["config"], request)
    reply = {"tool": request["tool"], "runId": request["ctx"]["runId"], "idempotencyKey": request["ctx"]["idempotencyKey"]}
    if code is None:
        reply |= {"ok": True, "result": value}
    else:
        reply |= {"ok": False, "error": {"code": code, "message": value}}
    print(json.dumps(reply))


if __name__ == "__main__":
    main()
