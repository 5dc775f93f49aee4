# SPDX-License-Identifier: MIT
"""A server that answers like the Hugging Face hub, like ollama's registry, and like the storage to which both redirect.
Attributes switch faults on, and every request is logged.

    hub = Hub()
    hub.add("org/repo", {"model-Q4_K_M.gguf": data})
    ... os.environ["HF_ENDPOINT"] = hub.url ...
    hub.close()
"""
import hashlib
import http.server
import json
import random
import re
import socket
import threading
import time
from urllib.parse import unquote, urlsplit


def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def digest(data):
    return hashlib.sha256(data).hexdigest()


class File:
    def __init__(self, data):
        self.data = self.sent = data   # the true bytes, and the bytes that are sent for a small file
        self.is_large = len(data) > 4096   # large files are redirected, and named by SHA-256
        self.etag = digest(data) if self.is_large else git_hash(data)


class Repo:
    def __init__(self, files, license_name, gated):
        self.files = {name: File(data) for name, data in files.items()}
        self.commit = hashlib.sha1(repr(sorted((n, f.etag) for n, f in self.files.items())).encode()).hexdigest()
        self.license, self.gated = license_name, gated


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, code, body=b"", **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and body:
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        path = urlsplit(self.path).path
        with hub.lock:
            hub.requests.append((self.command, self.headers.get("Host", ""), self.path, dict(self.headers)))
            fault = hub.faults.pop(0) if hub.faults and re.search(hub.faults[0][0], path) else None
        if fault and fault[1] is None:   # the connection is lost
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        if fault and fault[1]:   # 0: this request has no fault
            return self.answer(fault[1], b"no", **fault[2])
        if hub.token and not path.startswith("/storage/") and self.headers.get("Authorization") != "Bearer " + hub.token:
            return self.answer(401)
        for pattern, function in ((r"/api/models/(.+)/revision/([^/]+)$", self.info),
                                  (r"/api/models/(.+)/tree/([^/]+)$", self.tree),
                                  (r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)$", self.resolve),
                                  (r"/storage/([0-9a-f]+)$", self.storage),
                                  (r"/v2/(.+)/manifests/(.+)$", self.manifest),
                                  (r"/v2/(.+)/blobs/sha256:([0-9a-f]+)$", self.blob),
                                  (r"/plain/(.+)$", self.plain)):
            match = re.fullmatch(pattern, path)
            if match:
                return function(*[unquote(group) for group in match.groups()])
        return self.answer(404)

    # ------------------------------------------------------------------------------------ the hub

    def find(self, name, revision):
        repo = self.server.hub.repos.get(name)
        if repo and revision in ("main", repo.commit):
            return repo
        self.answer(404, **{"X_Error_Code": "RevisionNotFound" if repo else "RepoNotFound"})

    def info(self, name, revision):
        repo = self.find(name, revision)
        if not repo:
            return
        files = []
        for path, file in repo.files.items():
            item = {"rfilename": path, "size": len(file.data), "blobId": git_hash(file.data)}
            if file.is_large:
                item["lfs"] = {"sha256": file.etag, "size": len(file.data), "pointerSize": 130}
            files.append(item if self.server.hub.has_blobs else {"rfilename": path})
        body = {"id": name, "sha": repo.commit, "gated": repo.gated, "private": False, "siblings": files,
                "cardData": {"license": repo.license}, "tags": ["license:" + repo.license]}
        self.answer(200, json.dumps(body).encode(), Content_Type="application/json")

    def tree(self, name, revision):
        repo = self.find(name, revision)
        if not repo:
            return
        files = []
        for path, file in repo.files.items():
            files.append({"type": "file", "path": path, "size": len(file.data), "oid": git_hash(file.data)})
            if file.is_large:
                files[-1]["lfs"] = {"oid": file.etag, "size": len(file.data), "pointerSize": 130}
        self.answer(200, json.dumps(files).encode(), Content_Type="application/json")

    def resolve(self, name, revision, path):
        repo = self.find(name, revision)
        if not repo:
            return
        file = repo.files.get(path)
        if not file:
            return self.answer(404, X_Error_Code="EntryNotFound", X_Repo_Commit=repo.commit)
        headers = {"X_Repo_Commit": repo.commit}
        if not file.is_large:
            return self.send(file.sent, '"%s"' % file.etag, headers)
        headers.update(X_Linked_Etag='"%s"' % file.etag, X_Linked_Size=str(len(file.data)), ETag='"%s"' % file.etag,
                       Location=self.server.hub.storage_url + "/storage/" + file.etag)
        self.server.hub.blobs[file.etag] = file.data
        self.answer(302, **headers)

    # ------------------------------------------------------------------------------------ ollama

    def manifest(self, name, tag):
        text = self.server.hub.manifests.get((name, tag))
        if text is None:
            return self.answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')
        self.answer(200, text, Content_Type="application/vnd.docker.distribution.manifest.v2+json")

    def blob(self, name, sha256):
        if sha256 not in self.server.hub.blobs:
            return self.answer(404)
        self.answer(307, Location=self.server.hub.storage_url + "/storage/" + sha256)

    # ------------------------------------------------------------------------------------ files

    def storage(self, key):
        hub = self.server.hub
        data = hub.replaced.get(key, hub.blobs.get(key))
        if data is None:
            return self.answer(403)   # like a signed address that has expired
        self.send(data, hub.storage_etag or '"s-%s"' % digest(data)[:16], {})

    def plain(self, path):
        data = self.server.hub.plain.get(path)
        if data is None:
            return self.answer(404)
        if self.server.hub.is_chunked or self.server.hub.is_endless:
            return self.send_chunks(data)
        self.send(data, '"%s"' % digest(data)[:16], {})

    def send_chunks(self, data):
        hub = self.server.hub
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            while data:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                hub.sent += len(data)
                if not hub.is_endless:
                    break
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def send(self, data, etag, headers):
        hub = self.server.hub
        begin, end = 0, len(data)
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        code = 200
        if wanted and hub.has_ranges and condition in (None, etag):
            begin = int(wanted[1])
            end = min(end, int(wanted[2]) + 1) if wanted[2] else end
            if begin >= len(data):
                return self.answer(416, Content_Range="bytes */%d" % len(data))
            code = 206
            shift = hub.range_shift   # the reply names another range than the one it sends
            headers["Content_Range"] = "bytes %d-%d/%d" % (begin + shift, end - 1 + shift, len(data))
        self.answer(code, ETag=etag, Accept_Ranges="bytes", Content_Length=str(end - begin), **headers)
        if self.command == "HEAD":
            return
        while begin < end:
            n = min(hub.block, end - begin)
            if hub.pause:
                time.sleep(hub.pause)
            if hub.hold_after is not None and hub.sent >= hub.hold_after:
                hub.released.wait(120)
            with hub.lock:
                hub.sent += n
                if hub.cut_after is not None and hub.sent >= hub.cut_after:   # the connection is lost here
                    hub.cut_after = None
                    self.close_connection = True
                    self.wfile.write(data[begin:begin + n // 2])
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
            try:
                self.wfile.write(data[begin:begin + n])
            except OSError:
                self.close_connection = True
                return
            begin += n


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass   # the client was killed


class Hub:
    def __init__(self):
        self.repos, self.blobs, self.manifests, self.plain, self.replaced = {}, {}, {}, {}, {}
        self.requests, self.faults = [], []   # a fault is (pattern of the path, status, headers), and is used once
        self.lock = threading.Lock()
        self.hold_after, self.released = None, threading.Event()   # hold_after: bytes before `released`
        self.token = self.storage_etag = self.cut_after = None
        self.has_ranges = self.has_blobs = True
        self.is_chunked = self.is_endless = False   # the reply has no length
        self.sent, self.pause, self.block, self.range_shift = 0, 0, 65536, 0
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.hub = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % port
        self.storage_url = "http://localhost:%d" % port   # another host, like the hub's storage

    def add(self, name, files, license_name="apache-2.0", gated=False):
        self.repos[name] = Repo(files, license_name, gated)
        return self.repos[name]

    def add_ollama(self, name, tag, model, **others):
        layers = [("application/vnd.ollama.image.model", model)]
        layers += [("application/vnd.ollama.image." + kind, data) for kind, data in others.items()]
        config = json.dumps({"model_format": "gguf"}).encode()
        for data in [config] + [data for _, data in layers]:
            self.blobs[digest(data)] = data
        entry = lambda kind, data: {"mediaType": kind, "digest": "sha256:" + digest(data), "size": len(data)}
        self.manifests[name, tag] = json.dumps(
            {"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
             "config": entry("application/vnd.docker.container.image.v1+json", config),
             "layers": [entry(*layer) for layer in layers]}).encode()

    def asked(self, pattern):
        return [request for request in self.requests if re.search(pattern, request[2])]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def noise(n, seed):
    """Returns bytes that begin like a GGUF file, so that they are accepted as one."""
    return b"GGUF" + random.Random(seed).randbytes(n - 4)


def weights(n, seed):
    """Returns bytes that begin like a safetensors file."""
    return (2).to_bytes(8, "little") + b"{}" + random.Random(seed).randbytes(n - 10)
