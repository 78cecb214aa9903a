import Glibc
import TestSupport
import Testing

/// Output roots whose path is not UTF-8, as old file servers have them. A link gives such a path in UTF-8.
@Suite struct LinkedRootTests: GetScene {
  let home: TemporaryDirectory
  private let server: ScriptedServer

  init() throws {
    home = try Self.makeHome()
    server = try ScriptedServer { request, reply in try reply.respond("200 OK", body: Array(request.target.utf8)) }
  }

  /// Makes such a directory.
  /// - Returns: a link to it.
  private func makeDirectory() async throws -> String {
    let link = "\(home.path)/link"
    let script = #"d=$1/$(printf 'caf\351'); mkdir "$d" && ln -s "$d" "$2""#
    try await run(["/bin/sh", "-c", script, "sh", home.path, link], environment: testEnvironment).exits(0)
    return link
  }

  @Test(arguments: ["-d", "root:", "relative"]) func `a link gives an output root a path in UTF-8`(way: String)
    async throws
  {
    let link = try await makeDirectory()
    let spool = try TemporarySpool()
    if way == "root:" {
      try #require(mkdir(spool.path("roots"), 0o700) == 0)
      let script = #"ln -s "$1/$(printf 'caf\351')" "$2""#
      _ = try await run(
        ["/bin/sh", "-c", script, "sh", home.path, spool.path("roots/r")], environment: testEnvironment)
    }
    try spool.drop("a", "\(server.url("/x"))\n\(way == "root:" ? "root: r\n" : "")")
    let options = ["-d": ["-d", link], "relative": ["-d", "link"]][way] ?? []
    try await spoolrun(["--once"] + options + [spool.root], directory: home.path).exits(0)
    #expect(try readFile("\(link)/x") == Array("/x".utf8))
    let verified = try await spoolrun("verify", "--spool", spool.root)
    #expect(verified.status == .exited(0), "the receipt names it: \(verified)")
  }

  @Test func `get goes by the link, too`() async throws {
    let link = try await makeDirectory()
    try await get("-o", "\(link)/", server.url("/x")).exits(0)
    #expect(try readFile("\(link)/x") == Array("/x".utf8))
  }
}
