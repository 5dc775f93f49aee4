# SPDX-License-Identifier: MIT
"""frit behind Ray Serve: each replica runs a frit serve of its own and hands requests on, streams included. A client that
leaves cancels its request there too.

    pip install 'ray[serve]' httpx
    FRIT_MODEL=/srv/models/model.gguf serve run --app-dir deploy/ray serve_frit:app       (from the root of the checkout)
    curl -N http://127.0.0.1:8000/v1/chat/completions -d '{"stream": true, "messages": [{"role": "user", "content": "Hello."}]}'

Ray gives requests to the replica with the fewest; it does not know which one has a conversation's beginning in its cache.
"""
import os
import re
import signal
import subprocess
import threading

import httpx
from ray import serve
from starlette.requests import Request
from starlette.responses import StreamingResponse

PARALLEL = int(os.environ.get("FRIT_PARALLEL", "4"))
# Headers of the connection, not of the message (RFC 9110, 7.6.1). httpx sets the length and the host itself.
HOP_BY_HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length"}


def kept(headers):
    return {name: value for name, value in headers.items() if name.lower() not in HOP_BY_HOP}


@serve.deployment(
    # More requests than sessions: frit keeps the rest in its queue.
    max_ongoing_requests=2 * PARALLEL,
    # As long as frit may take to finish, and a little more.
    graceful_shutdown_timeout_s=45,
    health_check_period_s=10,
)
class Frit:
    def __init__(self, *options):
        program = os.environ.get("FRIT", "frit")
        self.process = subprocess.Popen([program, "serve", "--port", "0", "--parallel", str(PARALLEL), *options],
                                        stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stderr:   # one line says where, once requests are answered
            said.append(line)
            found = re.search(r"at (http://\S+)", line)
            if found:
                break
        else:
            raise RuntimeError(f"frit serve ended with {self.process.wait()}: {''.join(said)}")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()   # a full pipe would stop it
        self.client = httpx.AsyncClient(base_url=found[1], timeout=httpx.Timeout(10, read=None))

    async def __call__(self, request: Request):
        asked = self.client.build_request(request.method, request.url.path, params=request.query_params,
                                          headers=kept(request.headers), content=await request.body())
        answer = await self.client.send(asked, stream=True)

        async def parts():
            try:
                async for part in answer.aiter_raw():
                    yield part
            finally:   # also where the client has left: the connection ends, and frit drops the request
                await answer.aclose()

        return StreamingResponse(parts(), answer.status_code, kept(answer.headers))

    def check_health(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"frit serve ended with {self.process.returncode}")

    def __del__(self):
        if getattr(self, "process", None):
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(45)


app = Frit.bind()
