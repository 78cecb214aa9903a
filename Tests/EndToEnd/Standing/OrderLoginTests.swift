import Glibc
import TestSupport
import Testing

/// What is the worker's own for a host, and a list that names this host: whoever is in between can change a list that
/// comes over http.
@Suite struct OrderLoginTests {
  @Test func `no login goes in the clear to where only the list leads`() async throws {
    let files = try ScriptedServer { request, reply in
      if request.value("authorization") != nil { return try reply.respond("200 OK", body: [0x78]) }
      try reply.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"x\""], body: [])
    }
    let list = try FeedServer()
    // The same host by another port, and the list's own origin.
    list.put("\(files.url("/foreign"))\n\(list.url("/own"))\n")
    let spool = try TemporarySpool()
    try spool.write("netrc", "machine 127.0.0.1 login alice password apw\n")
    let defaults = "netrc: netrc\nheader@127.0.0.1: X-Key: s3cret\nheader: X-All: 1\n"
    try spool.write("defaults", defaults)
    try spool.order("o", "url: \(list.url("/list"))\nentries: list\nevery: 6h\nfirst: all\nheader: X-Order: t0p\n")
    let result = try await spool.once()
    let foreign = files.requests(for: "/foreign")
    #expect(spool.payloads == ["own"] && !foreign.isEmpty, "\(result)")
    for field in ["authorization", "x-key", "x-order"] {
      #expect(foreign.allSatisfy { $0.value(field) == nil }, "\(field)")
    }
    let own = try #require(list.requests("/own").first)
    #expect(own.value("x-key") == "s3cret" && own.value("x-order") == "t0p")
    #expect(foreign.first?.value("x-all") == "1")
    // A person who names the URL is obeyed.
    try spool.drop("a", "\(files.url("/asked"))\n")
    _ = try await spool.once()
    #expect(spool.payloads == ["asked", "own"] && files.requests(for: "/asked").last?.value("x-key") == "s3cret")
  }
}
