import Glibc
import TestSupport
import Testing

/// A job that asks for something else than when its data came: what is there is not the payload.
@Suite struct EditedJobTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws {
    (server, spool) = (
      try ScriptedServer { request, reply in
        if request.target.hasPrefix("/gone") { return try reply.respond("404 Not Found", body: []) }
        // A range beyond the end of the file, as of complete data.
        if let start = request.rangeStart, start >= request.target.utf8.count {
          let range = "Content-Range: bytes */\(request.target.utf8.count)"
          return try reply.respond("416 Range Not Satisfiable", [range, "ETag: \"1\""], body: [])
        }
        try reply.respond("200 OK", ["ETag: \"1\""], body: Array(request.target.utf8))
      }, try TemporarySpool()
    )
  }

  /// A job with all of its data, and no verdict about it.
  private func complete(_ path: String, _ more: String = "") async throws {
    try spool.install("verify", "kill -9 $$")
    try spool.drop("a", "url: \(server.url(path))\noutput: a.bin\n\(more)")
    try await spool.once(exits: 75)
    #expect(try readFile(spool.path("partial/a.part")) == Array(path.utf8))
    try #require(unlink(spool.path("hooks/verify")) == 0)
  }

  @Test func completeDataOfAnotherURL() async throws {
    try await complete("/old")
    try await spoolrun("url", "--spool", spool.root, "a", server.url("/brandnew")).exits(0)
    try await spool.once(exits: 0)
    #expect(try spool.payload("a.bin") == Array("/brandnew".utf8))
  }

  /// The same by hand, where no line of the journal tells. The file has the same length and ETag.
  @Test(arguments: [("/old", "/new"), ("/x?id=1", "/x?id=2"), ("/x", "/x?id=2")])
  func completeDataAndAnEditor(old: String, new: String) async throws {
    try await complete(old)
    let text = try spool.text("partial/a")
    let first = "url: \(server.url(old))\n"
    #expect(text.hasPrefix(first))
    try spool.write("partial/a", "url: \(server.url(new))\n" + text.dropFirst(first.count))
    try spool.makeDue("a")
    let result = try await spool.once()
    #expect(result.status == .exited(0) && server.requests(for: new).count > 0, "\(result)")
    // With another query, the same strong ETag stands for the same file.
    let isSame = old.hasPrefix("/x") && old.utf8.count == new.utf8.count
    #expect(try spool.payload("a.bin") == Array((isSame ? old : new).utf8), "\(result)")
  }

  /// The data has another name, so it is copied, and the copy is of the old URL, too.
  @Test func completeDataThatIsCopied() async throws {
    try spool.install("deliver", #"mv "$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT" "$SPOOLRUN_DIRECTORY/taken"; exit 3"#)
    try spool.drop("a", "url: \(server.url("/old"))\noutput: a.bin\n")
    try await spool.once(exits: 75)
    let text = try spool.text("partial/a")
    try spool.write("partial/a", text.replacing("/old\n", with: "/new\n", maxReplacements: 1))
    try spool.install("deliver", "exit 0")
    try spool.makeDue("a")
    let result = try await spool.once()
    #expect(result.status == .exited(0) && server.requests(for: "/new").count > 0, "\(result)")
    #expect(try spool.payload("a.bin") == Array("/new".utf8))
  }

  /// The lines of an older version do not say the query.
  @Test(arguments: [true, false]) func completeDataOfTheSameURL(isOlder: Bool) async throws {
    try await complete("/old?a=b")
    if isOlder {
      let text = try spool.text("partial/a")
      let older = text.replacing(#/ query=[0-9A-F]{8}\n/#, with: "\n", maxReplacements: 1)
      #expect(older != text)
      try spool.write("partial/a", older)
    }
    try spool.makeDue("a")
    try await spool.once(exits: 0)
    #expect(try spool.payload("a.bin") == Array("/old?a=b".utf8) && server.requests.count == 1, "nothing is asked")
  }

  /// The file that it is to replace may be newer. Where the server sends parts, a byte shows that it is the same.
  @Test func completeDataThatReplacesAFile() async throws {
    let scene = try Scene()
    try scene.spool.install("verify", "kill -9 $$")
    try scene.spool.drop("a", "url: \(scene.server.url("/a"))\noverwrite: yes\n")
    try await scene.spool.once(exits: 75)
    try #require(unlink(scene.spool.path("hooks/verify")) == 0)
    try scene.spool.makeDue("a")
    try await scene.spool.once(exits: 0)
    #expect(try scene.spool.payload("a") == payload)
    #expect(scene.server.requests.map(\.rangeStart) == [nil, payload.count - 1])
  }

  @Test func aPayloadThatWaitsForItsDelivery() async throws {
    try spool.install("deliver", "exit 3")
    try spool.drop("a", "url: \(server.url("/old"))\noutput: a.bin\n")
    try await spool.once(exits: 75)
    try await spoolrun("url", "--spool", spool.root, "a", server.url("/brandnew")).exits(0)
    try spool.install("deliver", "exit 0")
    try await spool.once(exits: 0)
    #expect(try spool.payload("a.bin") == Array("/brandnew".utf8))
  }

  /// What has the old name is taken back, and not left without an owner.
  @Test(arguments: [false, true]) func aPayloadThatIsToGoElsewhere(isHeld: Bool) async throws {
    try spool.install("deliver", "exit 3")
    try spool.drop("a", "url: \(server.url("/old"))\noutput: a.bin\n")
    #expect(try await spool.once().status == .exited(75) && spool.payloads == ["a.bin"])
    let text = try spool.text("partial/a")
    try spool.write("partial/a", text.replacing("output: a.bin", with: "output: d/b.bin"))
    if isHeld { try spool.move("partial/a", "new/a") } else { try spool.makeDue("a") }
    var result = try await spool.once()
    #expect(result.status == .exited(75) && spool.payloads == ["d/b.bin"], "\(result)")
    #expect(try spool.lines("partial/a").last { $0.key == "published" }?["output"] == "d/b.bin")
    try spool.install("deliver", "exit 0")
    try spool.makeDue("a")
    result = try await spool.once()
    #expect(result.status == .exited(0) && spool.payloads == ["d/b.bin"], "\(result)")
    #expect(spool.places(of: "a") == ["done/a"] && server.requests.count == 1)
  }

  /// What a worker leaves that dies between the payload's name and the move to `done/`.
  enum Left: CaseIterable {
    /// The payload is the data's inode, or a copy of it on another file system.
    case linked, copied
    /// The command's worker died after it had written `requeued:`.
    case requeued
    case withReceipt
    /// The data has lost its own name.
    case beforeMove
    /// Somebody has changed the payload, or put another file there.
    case changed, replaced
  }

  private func publish(_ left: Left) async throws {
    try await complete("/old")
    let (data, payload) = (spool.path("partial/a.part"), spool.path("files/a.bin"))
    if left == .copied { try writeFile(payload, try readFile(data)) } else { try #require(link(data, payload) == 0) }
    let inode = try #require(fileStatus(payload)?.st_ino)
    let sum = hex8(independentCRC32(Array("/old".utf8)))
    var lines = "verified: 2026-11-21T03:00:00Z size=4 crc32=\(sum) part=\(inode)\n"
    if left == .withReceipt || left == .beforeMove {
      lines += "done: 2026-11-21T03:00:00Z attempts=1 output=a.bin bytes-fetched=4\n"
    }
    if left == .beforeMove { try #require(unlink(data) == 0) }
    if left == .requeued { lines += "requeued: 2026-11-21T03:00:00Z\n" }
    if left == .changed { try writeFile(payload, "mine") }
    if left == .replaced {
      try #require(unlink(payload) == 0)
      try writeFile(payload, "/old")
    }
    try spool.write("partial/a", try spool.text("partial/a") + lines)
  }

  private func relink() async throws -> CommandResult {
    try await spoolrun("url", "--spool", spool.root, "a", server.url("/brandnew"))
  }

  /// The new link counts, and the job's own file is not in its way.
  @Test(arguments: [Left.linked, .copied, .requeued]) func aPayloadWithoutReceipt(left: Left) async throws {
    try await publish(left)
    try await relink().exits(0)
    let result = try await spool.once()
    #expect(result.status == .exited(0), "\(left): \(result)")
    #expect(try spool.payload("a.bin") == Array("/brandnew".utf8))
    #expect(spool.places(of: "a") == ["done/a"])
  }

  @Test(arguments: [Left.changed, .replaced]) func anotherFileInThePayloadsPlace(left: Left) async throws {
    try await publish(left)
    try await relink().exits(0)
    let before = try spool.payload("a.bin")
    let result = try await spool.once()
    #expect(result.status == .exited(1), "\(left): \(result)")
    #expect(try spool.lastFailure("failed/a")["code"] == "output-exists")
    #expect(try spool.payload("a.bin") == before)
  }

  /// The command comes too late: the job goes to `done/` with what it has.
  @Test(arguments: [Left.withReceipt, .beforeMove]) func aPayloadWithReceipt(left: Left) async throws {
    try await publish(left)
    try await relink().exits(1, saying: "all but done")
    try spool.makeDue("a")
    let result = try await spool.once()
    #expect(result.status == .exited(0), "\(left): \(result)")
    #expect(try spool.payload("a.bin") == Array("/old".utf8) && server.requests.count == 1)
  }

  /// A receipt that an editor has seen in time: the data shows that the job was not done.
  @Test func aPayloadWithReceiptAndAnEditor() async throws {
    try await publish(.withReceipt)
    let text = try spool.text("partial/a")
    try spool.write("tmp/a", text.replacing("/old\noutput", with: "/brandnew\noutput"))
    try #require(unlink(spool.path("partial/a")) == 0)
    try spool.move("tmp/a", "new/a")
    try await spool.once(exits: 0)
    #expect(try spool.payload("a.bin") == Array("/brandnew".utf8))
  }

  @Test func aJobThatWasDone() async throws {
    try spool.drop("a", "url: \(server.url("/old"))\noutput: a.bin\n")
    try await spool.once(exits: 0)
    let text = try spool.text("done/a")
    try spool.write("done/a", text.replacing("/old\noutput", with: "/new\noutput"))
    try spool.move("done/a", "new/a")
    try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/a")["code"] == "output-exists")
  }

  /// Data that is not what was verified is kept for a person, as after every mismatch.
  @Test func dataThatWasDamaged() async throws {
    try await complete("/old")
    let inode = try #require(fileStatus(spool.path("partial/a.part"))?.st_ino)
    let sum = hex8(independentCRC32(Array("/old".utf8)))
    let line = "verified: 2026-11-21T03:00:00Z size=4 crc32=\(sum) part=\(inode)\n"
    try spool.write("partial/a", try spool.text("partial/a") + line)
    let file = open(spool.path("partial/a.part"), O_WRONLY)
    #expect(pwrite(file, "XY", 2, 1) == 2 && close(file) == 0)
    try spool.makeDue("a")
    try await spool.once(exits: 75)
    #expect(try spool.lastFailure("partial/a")["code"] == "mismatch-crc32")
    #expect(try readFile(spool.path("failed/a.part")) == Array("/XYd".utf8))
  }

  /// Refusals in a row are counted from where the job was dropped again.
  @Test func refusalsAfterARetry() async throws {
    let refusing = try ScriptedServer { request, reply in
      if request.nth > 1 { return try reply.respond("404 Not Found", body: []) }
      try reply.head("200 OK", ["ETag: \"1\"", "Content-Length: 100"])
      try reply.send(Array("half"[...].utf8))
      try reply.reset()
    }
    try spool.drop("a", "\(refusing.url("/a"))\n")
    for status: Int32 in [75, 75, 1] {
      if fileStatus(spool.path("partial/a")) != nil { try spool.makeDue("a") }
      try await spool.once(exits: status)
    }
    try await spoolrun("retry", "--spool", spool.root, "a").exits(0)
    #expect(try await spool.once().status == .exited(75), "temporary, as the first time")
  }

  /// When a file was written says nothing of when it was dropped.
  @Test func aCopyOfAJobThatIsDropped() async throws {
    try spool.drop("a", "url: \(server.url("/x"))\noutput: a.bin\n")
    try spool.write("tmp/b", try readFile(spool.path("new/a")))
    try setModificationTime(spool.path("tmp/b"), secondsFromNow: -1000)
    try await spool.once(exits: 0)
    try await waitUntil("the receipt is not of this second") {
      let receipt = try #require(fileStatus(spool.path("done/a")))
      return time(nil) > receipt.st_ctim.tv_sec + 1
    }
    try spool.move("tmp/b", "new/b")
    try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/b")["code"] == "output-exists")
  }
}
