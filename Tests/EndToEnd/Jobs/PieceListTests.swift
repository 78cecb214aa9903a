import Glibc
import TestSupport
import Testing

/// Lists of pieces: where they come from, and where they go.
@Suite struct PieceListTests {
  /// Three pieces of 1 MiB, the last one short.
  private static let bytes = Array(repeating: Array("piece by piece. ".utf8), count: 140_000).flatMap(\.self)

  private func scene() throws -> (Scene, ScriptedServer) {
    let server = try ScriptedServer { request, reply in
      if let start = request.rangeStart {
        let end = min(Self.bytes.count, (request.rangeEnd ?? .max - 1) + 1)
        return try reply.respond(
          "206 Partial Content", ["Content-Range: bytes \(start)-\(end - 1)/\(Self.bytes.count)"],
          body: Self.bytes[start..<end])
      }
      var bytes = Self.bytes
      if request.target.hasSuffix("flipped") { bytes[1_500_000] ^= 4 }
      try reply.respond("200 OK", body: bytes)
    }
    return (try Scene(), server)
  }

  @Test func `a list that verify prints is one that add takes`() async throws {
    let (scene, server) = try scene()
    _ = try await scene.spoolrun("add", server.url("/a"))
    try await scene.spool.once(exits: 0)
    let printed = try await scene.spoolrun("verify", "--pieces", "a")
    let lines = printed.output.split(separator: "\n")
    #expect(printed.status == .exited(0) && lines.count == 4 && lines[0] == "pieces: sha256 1M", "\(printed)")
    let list = "\(scene.spool.root)/../a.pieces"
    try writeFile(list, printed.output)

    try await scene.spoolrun("add", "--pieces", list, server.url("/flipped")).exits(0)
    let name = try #require(scene.spool.names("pieces").first)
    #expect(try readFile(scene.spool.path("pieces/\(name)")) == Array(printed.output.utf8))
    let text = try scene.spool.text("new/flipped")
    #expect(text.hasSuffix("\npieces: sha256 1M \(name)\n"))
    let result = try await scene.spoolrun("--once", "-v")
    #expect(result.errors.contains("repaired"), "\(result)")
    #expect(try scene.spool.payload("flipped") == Self.bytes)

    try scene.spool.write("files/a", "rotten")
    let rotten = try await scene.spoolrun("verify", "--pieces", "a")
    #expect(rotten.status == .exited(1) && rotten.output == "" && rotten.errors.contains("changed"), "\(rotten)")
    for wrong in [["--pieces"], ["--pieces", "a", "b"], ["--pieces", "--sums", "sha256", "a"]] {
      try await scene.spoolrun(["verify"] + wrong).exits(64)
    }
    for wrong in ["/dev/null", "\(scene.spool.root)/none", "sha256 1M 00"] {
      try await scene.spoolrun("add", "--pieces", wrong, server.url("/b")).exits(64, saying: "--pieces")
    }
  }

  @Test(arguments: [3, 4])
  func `the pieces of a Metalink`(version: Int) async throws {
    let (scene, server) = try scene()
    _ = try await scene.spoolrun("add", server.url("/a"))
    _ = try await scene.spoolrun("--once")
    let hashes = try await scene.spoolrun("verify", "--pieces", "a").output.split(separator: "\n").dropFirst()
    let pieces =
      "<pieces length=\"1048576\" type=\"\(version == 3 ? "sha256" : "sha-256")\">"
      + hashes.enumerated().map { "<hash piece=\"\($0)\">\($1)</hash>" }.joined() + "</pieces>"
    let weaker = "<pieces length=\"1048576\" type=\"sha1\"><hash>00</hash></pieces>"
    let (size, url) = ("<size>\(Self.bytes.count)</size>", "<url>\(server.url("/flipped"))</url>")
    let text =
      version == 3
      ? """
      <metalink version="3.0" xmlns="http://www.metalinker.org/"><files><file name="m">\(size)\
      <verification>\(weaker)\(pieces)</verification><resources>\(url)</resources></file></files></metalink>
      """
      : """
      <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="m">\(size)\(pieces)\(weaker)\(url)</file>\
      </metalink>
      """
    let list = "\(scene.spool.root)/../list.metalink"
    try writeFile(list, text)
    let added = try await scene.spoolrun("add", "--from", list)
    #expect(added.status == .exited(0) && scene.spool.names("pieces").count == 1, "\(added)")
    let result = try await scene.spoolrun("--once", "-v")
    #expect(result.errors.contains("repaired"), "\(result)")
    #expect(try scene.spool.payload("m") == Self.bytes)

    // As many as the size needs.
    try writeFile(list, text.replacing("<hash piece=\"2\">\(Array(hashes)[2])</hash>", with: ""))
    try await scene.spoolrun("add", "--from", list).exits(64, saying: "pieces: 2 of 1048576")
  }

  @Test func `clean removes a list that nobody needs any more`() async throws {
    let (scene, server) = try scene()
    let digest = String(repeating: "0a", count: 32)
    for (name, number) in [("a", 1), ("b", 2)] {
      let list = "\(scene.spool.root)/../\(name).pieces"
      try writeFile(list, "pieces: sha256 \(number)M\n\(digest)\n")
      try await scene.spoolrun("add", "--pieces", list, server.url("/\(name)")).exits(0)
    }
    let lists = scene.spool.names("pieces")
    unlink(scene.spool.path("new/b"))
    #expect(try await scene.spoolrun("clean").output == "", "they are new")
    for list in lists { try setModificationTime(scene.spool.path("pieces/\(list)"), secondsFromNow: -40 * 3600) }
    let own = try scene.spool.text("new/a").split(separator: " ").last ?? ""
    let result = try await scene.spoolrun("clean")
    let left = scene.spool.names("pieces").map { "\($0)\n" }
    #expect(left == [String(own)], "\(result)")
  }

  /// A crash came before the receipt, and perhaps before the payload's name. The list may have been removed since.
  @Test(arguments: [true, false], [["files/b"], ["partial/b.part"], ["files/b", "partial/b.part"]])
  func `a job whose data is verified needs no list`(hasList: Bool, names: [String]) async throws {
    let (scene, server) = try scene()
    defer { server.stop() }
    _ = try await scene.spoolrun("add", server.url("/a"))
    _ = try await scene.spoolrun("--once")
    let list = "\(scene.spool.root)/../a.pieces"
    try writeFile(list, try await scene.spoolrun("verify", "--pieces", "a").output)
    _ = try await scene.spoolrun("add", "--pieces", list, server.url("/b"))
    try await scene.spool.once(exits: 0)
    let lines = try scene.spool.text("done/b").split(separator: "\n")
    #expect(lines.last?.hasPrefix("done: ") == true)
    try scene.spool.write("partial/b", lines.dropLast().map { $0 + "\n" }.joined())
    unlink(scene.spool.path("done/b"))
    if !hasList { unlink(scene.spool.path("pieces/\(scene.spool.names("pieces")[0])")) }
    let file = scene.spool.path("files/b")
    let inode = fileStatus(file)?.st_ino
    if names.contains("partial/b.part") { #expect(link(file, scene.spool.path("partial/b.part")) == 0) }
    if !names.contains("files/b") { unlink(file) }
    let before = server.requests.count
    let result = try await scene.spoolrun("--once")
    #expect(result.status == .exited(0) && scene.spool.places(of: "b") == ["done/b"], "\(result)")
    #expect(server.requests.count == before && fileStatus(file)?.st_ino == inode)
  }
}
