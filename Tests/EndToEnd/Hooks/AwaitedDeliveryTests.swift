import TestSupport
import Testing

/// A job whose output is that of another one, which has published it and has still to deliver it.
@Suite struct AwaitedDeliveryTests {
  /// Accepts nothing as long as there is the file `refuse`. With the file `take` it takes payloads away.
  private static let hook = """
    echo "$SPOOLRUN_JOB" >>"$SPOOLRUN_SPOOL/delivered"
    test ! -e "$SPOOLRUN_SPOOL/refuse" || exit 1
    test ! -e "$SPOOLRUN_SPOOL/take" || rm "$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT"
    """

  private func server() throws -> ScriptedServer {
    try ScriptedServer { request, reply in
      try reply.respond("200 OK", body: Array((request.target == "/other" ? "other\n" : "payload\n").utf8))
    }
  }

  /// A spool in which the job `a` for the output `o` waits for its delivery.
  private func spool(_ server: ScriptedServer) async throws -> TemporarySpool {
    let spool = try TemporarySpool()
    try spool.install("deliver", Self.hook)
    try spool.write("refuse", [])
    try spool.drop("a", "url: \(server.url("/x"))\noutput: o\n")
    try #require(try await spoolrun("--once", spool.root).status == .exited(75))
    return spool
  }

  private func accept(_ spool: TemporarySpool) throws { try spool.move("refuse", "refuse-no-more") }

  private func delivers(_ spool: TemporarySpool, _ job: String, existing: String? = nil) throws -> Bool {
    let receipt = try spool.lines("done/\(job)").last
    return receipt?.key == "done" && receipt?["delivered"] != nil && receipt?["existing"] == existing
  }

  /// The same URL, or a digest: the payload is what the second job wants. It is delivered for both.
  @Test(arguments: ["partial", "hold", "failed", "new"], [true, false])
  func theSamePayload(place: String, declares: Bool) async throws {
    let server = try server()
    let spool = try await spool(server)
    let sum = "crc32: \(hex8(independentCRC32(Array("payload\n".utf8))))\n"
    try spool.drop("b", "url: \(server.url(declares ? "/y" : "/x"))\noutput: o\n\(declares ? sum : "")")
    if place != "partial" { try spool.move("partial/a", "\(place)/a") }
    try accept(spool)
    try await spool.once(exits: 0)
    #expect(try delivers(spool, "b", existing: "yes") && server.requests.count == 1)
    let wasMoved = place == "hold" || place == "failed"
    if wasMoved { try spool.move("\(place)/a", "new/a") }
    // On a busy machine it was due by itself, and is done.
    if spool.places(of: "a") == ["partial/a"] { try spool.makeDue("a") }
    try await spool.once(exits: 0)
    #expect(try delivers(spool, "a") && server.requests.count == 1)
    #expect(try await spoolrun("clean", spool.root).output == "" && spool.names("partial") == [])
  }

  /// Other bytes wait until the first job has ended: its hook may take the payload away.
  @Test(arguments: [true, false])
  func anotherPayloadWaits(isTaken: Bool) async throws {
    let server = try server()
    let spool = try await spool(server)
    if isTaken { try spool.write("take", []) }
    try spool.drop("b", "url: \(server.url("/other"))\noutput: o\n")
    try await spoolrun("--once", "-v", spool.root).exits(75, saying: "waits-for-output job=b output=o other=a")
    #expect(spool.places(of: "b") == ["partial/b"] && server.requests.count == 1)
    #expect(try spool.lines("partial/b").filter { $0.key == "interrupted" }.count == 1)
    let table = try await spoolrun("status", spool.root).output
    #expect(table.contains("waits for a, which has its output"), "\(table)")
    try accept(spool)
    for job in ["a", "b"] {
      // On a busy machine it was due by itself, and has ended.
      if spool.places(of: job) == ["partial/\(job)"] { try spool.makeDue(job) }
      _ = try await spoolrun("--once", spool.root)
    }
    #expect(try delivers(spool, "a"))
    if isTaken {
      #expect(try delivers(spool, "b") && spool.names("files") == [])
    } else {
      #expect(try spool.lastFailure("failed/b")["reason"]?.contains("as the output of done/a") == true)
      #expect(try spool.payload("o") == Array("payload\n".utf8))
    }
  }

  /// What has not been delivered is not replaced, even by a job that may replace files.
  @Test func aReplacementWaits() async throws {
    let server = try server()
    let spool = try await spool(server)
    try spool.drop("b", "url: \(server.url("/other"))\noutput: o\noverwrite: yes\n")
    try await spool.once(exits: 75)
    #expect(try spool.payload("o") == Array("payload\n".utf8) && server.requests.count == 1)
    try accept(spool)
    for job in ["a", "b"] {
      // On a busy machine it was due by itself, and has ended.
      if spool.places(of: job) == ["partial/\(job)"] { try spool.makeDue(job) }
      _ = try await spoolrun("--once", spool.root)
    }
    #expect(try delivers(spool, "a") && delivers(spool, "b"), "\(spool.listing(of: "a")) \(spool.listing(of: "b"))")
    #expect(try spool.payload("o") == Array("other\n".utf8))
  }

  /// Both have published it, and somebody has put another file there.
  @Test func twoDoNotWaitForEachOther() async throws {
    let server = try server()
    let spool = try await spool(server)
    try spool.drop("b", "url: \(server.url("/x"))\noutput: o\n")
    try await spool.once(exits: 75)
    #expect(spool.places(of: "b") == ["partial/b"])
    try spool.write("o", [1])
    try spool.move("o", "files/o")
    for job in ["a", "b"] { try spool.makeDue(job) }
    try await spool.once(exits: 1)
    #expect(spool.names("failed") == ["a", "b"] && server.requests.count == 1)
    #expect(try spool.payload("o") == [1])
  }

  /// A job that nobody will run is not waited for.
  @Test(arguments: ["hold", "failed"])
  func oneThatWaitsForAPersonIsNot(place: String) async throws {
    let server = try server()
    let spool = try await spool(server)
    try spool.move("partial/a", "\(place)/a")
    try spool.drop("b", "url: \(server.url("/other"))\noutput: o\n")
    try spool.drop("c", "url: \(server.url("/other"))\noutput: o\noverwrite: yes\n")
    try setModificationTime(spool.path("new/b"), secondsFromNow: -60)
    try accept(spool)
    try await spool.once(exits: 1)
    #expect(try spool.lastFailure("failed/b")["reason"]?.contains("as the output of \(place)/a") == true)
    #expect(try delivers(spool, "c"))
  }
}
