import Glibc
import TestSupport
import Testing

/// What `make powercut` found that a power cut can leave, made by hand.
@Suite struct PowerCutTests {
  /// A commit that replaces a file was cut between link(2) and rename(2), and the disk has the link but none of the
  /// journal's lines, or only the first: found on btrfs. The data is the job's own nevertheless.
  @Test(arguments: 0...2)
  func theTemporaryNameOutlivesTheJournal(lines: Int) async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    let data = spool.path("partial/a.part")
    try writeFile(data, "payload\n")
    try spool.write("files/a", "old\n")
    let (root, part) = (try #require(fileStatus(spool.root)).st_ino, try #require(fileStatus(data)).st_ino)
    let temporary = spool.path("files/.spoolrun-\(String(root, radix: 16))-\(String(part, radix: 16))")
    try #require(link(data, temporary) == 0)
    let host = try hostName()
    let url = server.url("/a")
    let journal = [
      "started: 2026-11-21T03:00:00Z attempt=1 worker=\(host).1.0000000a boot=before mirror=1 url=\(url)\n",
      "response: mirror=1 at=0 part=\(part) size=8 etag=\"\\\"v1\\\"\"\n",
    ]
    let text = "url: \(url)\noverwrite: yes\n" + journal.prefix(lines).joined()
    try spool.write("cur/a:\(host).1.0000000a", text)
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
    #expect(spool.places(of: "a") == ["done/a"], "under its own name")
    #expect(spool.names("done") == ["a"])
    #expect(fileStatus(temporary) == nil && spool.names("partial") == [])
    #expect(try spool.payload("a") == Array("payload\n".utf8))
  }
}
