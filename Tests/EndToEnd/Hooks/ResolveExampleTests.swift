import Glibc
import Synchronization
import TestSupport
import Testing

/// The examples in contrib/hooks, against servers whose links and tokens expire.
@Suite(.enabled("needs python3") { try await Need.program("python3").isMet() })
struct ResolveExampleTests {
  private func spool(_ hooks: String...) async throws -> TemporarySpool {
    let spool = try TemporarySpool()
    try await runTool(
      ["/bin/sh", "-euc", "mkdir -m 700 \"$1/hooks\"; shift; cp \"$@\"", "sh", spool.root]
        + hooks.map { "\(SourceTree.root)/contrib/hooks/\($0)" } + [spool.path("hooks")])
    return spool
  }

  /// Half of the payload now, and the rest when the link has expired.
  private static func half(_ request: ServerRequest, _ reply: Reply, milliseconds: Int32) throws {
    let start = request.rangeStart ?? 0
    let isPart = start > 0
    let range = isPart ? ["Content-Range: bytes \(start)-\(payload.count - 1)/\(payload.count)"] : []
    try reply.head(
      isPart ? "206 Partial Content" : "200 OK", ["ETag: \"1\"", "Content-Length: \(payload.count - start)"] + range)
    if isPart { return try reply.send(payload[start...]) }
    try reply.send(payload[..<(payload.count / 2)])
    try reply.pause(milliseconds: milliseconds)
    try reply.reset()
  }

  /// The text behind `name=` in a query.
  private static func field(_ name: String, _ target: String) -> String? {
    target.split(separator: "?").last?.split(separator: "&").first { $0.hasPrefix("\(name)=") }
      .map { String($0.dropFirst(name.count + 1)) }
  }

  /// A link that is good for one request. The next one is another, because it is signed in a later second.
  @Test func aPresignedURL() async throws {
    let server = try ScriptedServer { request, reply in
      guard request.target.hasPrefix("/bucket/d%20r/key?"), Self.field("X-Amz-Expires", request.target) == "2",
        Self.field("X-Amz-Signature", request.target)?.count == 64
      else { return try reply.respond("400 Bad Request", body: []) }
      guard request.nth == 1 else {
        return try reply.respond("403 Forbidden", body: Array("<Code>AccessDenied</Code>".utf8))
      }
      try Self.half(request, reply, milliseconds: 1000)
    }
    let spool = try await spool("resolve", "resolve-s3")
    try spool.drop("a", "resolve: s3 bucket/d r/key\noutput: a\n")
    try spool.drop("b", "resolve: s3 other/key\noutput: b\n")
    let environment = [
      "AWS_ENDPOINT_URL": server.url(""), "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s3cret",
      "S3_BUCKETS": "bucket", "S3_EXPIRES": "2",
    ]
    let result = try await spoolrun("--once", "-v", spool.root, environment: environment)
    #expect(try spool.payload("a") == payload, "\(result)")
    // The expired link is tried without If-Range as well.
    #expect(server.requests.count == 4, "a half, an expired link, the rest: \(server.requests)")
    let again = payload.count / 2 - resumePoint(after: payload.count / 2)
    #expect(try spool.lines("done/a").last { $0.key == "done" }?["bytes-fetched"] == "\(payload.count + again)")
    #expect(try spool.lastFailure("failed/b")["code"] == "unresolvable", "\(result)")
    #expect(
      try spool.files(with: ["AKIAEXAMPLE", "X-Amz"], except: []) == [] && !result.errors.contains("AKIAEXAMPLE"))
  }

  /// The example of Amazon's documentation (Authenticating Requests: Using Query Parameters).
  @Test func theSignatureIsAmazons() async throws {
    let program = """
      import datetime, importlib.machinery, types
      hook = types.ModuleType("hook")
      importlib.machinery.SourceFileLoader("hook", "\(SourceTree.root)/contrib/hooks/resolve-s3").exec_module(hook)
      print(hook.presigned("examplebucket", "test.txt", datetime.datetime(2013, 5, 24), {
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "S3_EXPIRES": "86400",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}))
      """
    let url = try await run(["/usr/bin/env", "python3", "-B", "-c", program]).output
    #expect(url.hasPrefix("https://examplebucket.s3.amazonaws.com/test.txt?"), "\(url)")
    #expect(
      url.hasSuffix("&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404\n"), "\(url)")
  }

  /// A token that is good for one request.
  @Test func aTokenForOneRequest() async throws {
    let given = Atomic<Int>(0)
    let used = Atomic<Int>(0)
    let server = try ScriptedServer { request, reply in
      if request.target == "/token" {
        let number = given.add(1, ordering: .relaxed).newValue
        let body = #"{"access_token": "t0ken-\#(number)", "token_type": "Bearer", "expires_in": 2}"#
        // The request's body is read as the next request, so the connection ends here.
        try reply.respond("200 OK", ["Connection: close"], body: Array(body.utf8))
        return try reply.finish()
      }
      let token = request.value("authorization")?.split(separator: "-").last.flatMap { Int($0) } ?? 0
      guard used.max(token, ordering: .relaxed).oldValue < token else {
        return try reply.respond("401 Unauthorized", body: [])
      }
      try Self.half(request, reply, milliseconds: 500)
    }
    let spool = try await spool("resolve", "resolve-oauth")
    let known =
      #"{"\#(server.url(""))": {"token": "\#(server.url("/token"))", "fields": {"refresh_token": "r3fresh"}}}"#
    try spool.write("hooks/oauth.json", known)
    try spool.drop("a", "resolve: oauth \(server.url("/files/1"))\noutput: a\n")
    try spool.drop("b", "resolve: oauth http://127.0.0.1:9/files/1\noutput: b\n")
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(try spool.payload("a") == payload, "\(result)\n\(spool.listing(of: "a"))")
    #expect(server.requests(for: "/token").count == 2 && server.requests(for: "/files/1").count == 3)
    #expect(try spool.lastFailure("failed/b")["code"] == "unresolvable", "\(result)")
    #expect(try spool.files(with: ["t0ken"], except: []) == [] && !result.errors.contains("t0ken"), "\(result)")
  }

  /// Each request is redirected to a link of its own at another host, which is not given the token.
  @Test func aRedirectToASignedLink() async throws {
    let bytes = Array("payload\n".utf8)
    let digest = try await run(["/bin/sh", "-c", "printf 'payload\\n' | sha256sum"]).output.prefix(64)
    let cdn = try ScriptedServer { request, reply in
      // The second use of a link comes too late.
      guard request.nth == 1, request.value("authorization") == nil else {
        return try reply.respond("403 Forbidden", body: [])
      }
      let start = request.rangeStart ?? 0
      let range = start > 0 ? ["Content-Range: bytes \(start)-\(bytes.count - 1)/\(bytes.count)"] : []
      try reply.head(
        start > 0 ? "206 Partial Content" : "200 OK", ["ETag: \"1\"", "Content-Length: \(bytes.count - start)"] + range)
      if start > 0 { return try reply.send(bytes[start...]) }
      try reply.send(bytes[..<4])
      try reply.reset()
    }
    let server = try ScriptedServer { request, reply in
      guard request.value("authorization") == "Bearer hf_t0ken" else {
        return try reply.respond("401 Unauthorized", body: [])
      }
      let fields = [
        "Location: \(cdn.url("/blob?signature=\(request.nth)"))", "X-Linked-Size: \(bytes.count)",
        "X-Linked-Etag: \"\(digest)\"",
      ]
      // A HEAD has no body.
      try reply.head("302 Found", fields + ["Content-Length: 0"])
    }
    let spool = try await spool("resolve", "resolve-huggingface")
    try spool.drop("a", "resolve: huggingface owner/name main sub/model v1.bin\noutput: a\n")
    try spool.drop("b", "resolve: huggingface owner/other main x\noutput: b\n")
    try spool.drop("c", "resolve: huggingface owner/name main ../../../other/resolve/main/x\noutput: c\n")
    let environment = [
      "HF_ENDPOINT": server.url(""), "HF_TOKEN": "hf_t0ken", "HF_REPOSITORIES": "owner/name",
    ]
    let result = try await spoolrun("--once", "-v", spool.root, environment: environment)
    #expect(try spool.payload("a") == bytes, "\(result)\n\(spool.listing(of: "a"))")
    #expect(server.requests.allSatisfy { $0.target == "/owner/name/resolve/main/sub/model%20v1.bin" })
    #expect(try spool.lines("done/a").last { $0.key == "verified" }?["sha256"] == String(digest))
    #expect(try spool.lastFailure("failed/b")["code"] == "unresolvable", "\(result)")
    #expect(try spool.lastFailure("failed/c")["code"] == "unresolvable", "\(result)")
    #expect(try spool.files(with: ["t0ken", "signature"], except: []) == [] && !result.errors.contains("t0ken"))
  }
}
