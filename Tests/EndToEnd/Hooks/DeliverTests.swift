import Glibc
import TestSupport
import Testing

/// The hook `deliver`, which passes a payload on before its job is done.
@Suite struct DeliverTests {
  private let server: ScriptedServer

  init() throws { server = try simpleServer() }

  private let bytes = Array("payload\n".utf8)

  /// Each run writes a line, with what it was told; it fails as long as there is the file `refuse`.
  private static let hook = """
    echo "$SPOOLRUN_JOB $SPOOLRUN_SIZE $(cat "$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT")" >>"$SPOOLRUN_SPOOL/delivered"
    test ! -e "$SPOOLRUN_SPOOL/refuse" || { echo 'no room there'; exit 1; }
    """

  private func spool(_ hook: String = hook, refusing: Bool = false) throws -> TemporarySpool {
    let spool = try TemporarySpool()
    try spool.install("deliver", hook)
    if refusing { try spool.write("refuse", []) }
    return spool
  }

  private func accept(_ spool: TemporarySpool) { unlink(spool.path("refuse")) }

  private func receipt(_ spool: TemporarySpool) throws -> JobLine {
    try #require(try spool.lines("done/a").last { $0.key == "done" })
  }

  @Test func theReceiptSaysWhen() async throws {
    let spool = try spool()
    try spool.drop("a", "url: \(server.url("/x"))\noutput: d/a\n")
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(result.status == .exited(0) && spool.told("delivered") == ["a 8 payload"], "\(result)")
    let lines = try spool.lines("done/a").map(\.key)
    #expect(lines.suffix(3) == ["verified", "published", "done"], "\(lines)")
    #expect(try receipt(spool)["delivered"].flatMap { secondsSinceEpoch(rfc3339: $0) } != nil)
    #expect(result.errors.contains(" published job=a output=d/a\n"))
  }

  @Test func `what it has moved on is no error, until it is asked for again`() async throws {
    let spool = try spool(#"mv "$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT" "$SPOOLRUN_SPOOL/elsewhere""#)
    try spool.drop("a", "\(server.url("/x"))\n")
    #expect(try await spoolrun("--once", spool.root).status == .exited(0) && spool.payloads == [])
    for options in [[], ["--refetch"], ["-v", "a"], ["--refetch", "a"]] {
      let result = try await spoolrun(["verify", "--spool", spool.root] + options)
      #expect(result.status == .exited(0) && !result.errors.contains("--refetch"), "\(result)")
      #expect((result.output == "a: delivered: x\n") == options.contains("-v"))
    }
    #expect(try await spoolrun("clean", spool.root).output == "" && spool.places(of: "a") == ["done/a"])
    let elsewhere = try await spoolrun("verify", "--spool", spool.root, "-d", spool.path("hold"))
    #expect(elsewhere.status == .exited(1) && elsewhere.output == "a: missing: x\n", "\(elsewhere)")
    try await spoolrun("retry", "--spool", spool.root, "a").exits(0)
    #expect(spool.places(of: "a") == ["new/a"])
  }

  /// Without the hook nothing is different.
  @Test func withoutItNothingIsSaid() async throws {
    let spool = try TemporarySpool()
    try spool.drop("a", "\(server.url("/x"))\n")
    try await spool.once(exits: 0)
    #expect(try receipt(spool)["delivered"] == nil && spool.lines("done/a").count { $0.key == "published" } == 0)
  }

  /// Its failure is temporary, and fetches nothing again. Deliveries have their own attempts and delays.
  @Test func itIsTriedAgain() async throws {
    let server = try ScriptedServer { request, reply in
      // For an hour: no run makes the next attempt by itself, however slow it is.
      if request.nth == 1 { return try reply.respond("503 Busy", ["Retry-After: 3600"], body: []) }
      try reply.respond("200 OK", ["ETag: \"1\""], body: Array("payload\n".utf8))
    }
    let spool = try spool(refusing: true)
    try spool.drop("a", "url: \(server.url("/x"))\noutput: a\nattempts: 2\nexpires: 2099-01-01\n")
    try await spool.once(exits: 75)
    try spool.makeDue("a")
    let result = try await spoolrun("--once", spool.root)
    #expect(
      result.status == .exited(75) && result.errors.contains("a: deliver: the deliver hook failed: "), "\(result)")
    #expect(try spool.payload("a") == bytes, "it is published")
    let record = try spool.lastFailure("partial/a")
    #expect(record["code"] == "deliver" && record["class"] == "temporary" && record["attempt"] == "1")
    #expect(record["reason"]?.contains("exit status 1: no room there") == true, "\(record)")
    // The second failure is the last: as many as `attempts:`.
    try spool.makeDue("a")
    try await spool.once(exits: 1)
    #expect(spool.places(of: "a") == ["failed/a"] && spool.told("delivered").count == 2)
    accept(spool)
    _ = try await spoolrun("retry", "--spool", spool.root, "a")
    try await spool.once(exits: 0)
    #expect(server.requests.count == 2 && spool.told("delivered").count == 3, "\(spool.listing(of: "a"))")
    #expect(try receipt(spool)["delivered"] != nil && receipt(spool)["existing"] == nil)
    #expect(spool.names("partial") == [])
  }

  /// `expires:` is about the download. Until the hook has it, what is published is tried again.
  @Test func whatIsPublishedIsDeliveredHoweverLate() async throws {
    let spool = try spool(refusing: true)
    try spool.drop("a", "url: \(server.url("/x"))\nexpires: 2099-01-01\n")
    try await spool.once(exits: 75)
    let text = try spool.text("partial/a")
    try spool.write("partial/a", text.replacing("2099-01-01", with: "2020-01-01"))
    for isAccepted in [false, true] {
      try spool.makeDue("a")
      if isAccepted {
        // As after a pause, which starts the job anew.
        try spool.move("partial/a", "new/a")
        accept(spool)
      }
      try await spool.once(exits: isAccepted ? 0 : 75)
    }
    #expect(server.requests.count == 1 && spool.told("delivered").count == 3)
  }

  /// Limits are about the download, too.
  @Test(arguments: [["--max-size", "1"], ["--protocols", "https"], []])
  func whatIsPublishedIsDeliveredWhateverIsAllowed(options: [String]) async throws {
    let spool = try spool(refusing: true)
    try spool.drop("a", "url: \(server.url("/x"))\nsize: 8\n")
    try await spool.once(exits: 75)
    if options.isEmpty { try spool.write("defaults", "signed: required\n") }
    accept(spool)
    try spool.makeDue("a")
    let result = try await spoolrun(["--once"] + options + [spool.root])
    #expect(result.status == .exited(0) && server.requests.count == 1, "\(result)\n\(spool.listing(of: "a"))")
  }

  /// Nothing is left to ask it for.
  @Test func aDeliveryDoesNotWaitForAServerThatRests() async throws {
    let server = try ScriptedServer { request, reply in
      if request.target == "/x" { return try reply.respond("200 OK", body: Array("payload\n".utf8)) }
      try reply.respond("503 Busy", ["Retry-After: 600"], body: [])
    }
    let spool = try spool(refusing: true)
    try spool.drop("a", "\(server.url("/x"))\n")
    _ = try await spoolrun("--once", spool.root)
    try spool.drop("b", "\(server.url("/busy"))\n")
    _ = try await spoolrun("--once", spool.root)
    #expect(spool.names("servers") == ["http-127.0.0.1-\(server.port)"])
    accept(spool)
    // It is due, and no person has asked for it.
    let text = try spool.text("partial/a")
    let due = text.replacing(/retry=[-0-9T:]*Z/, with: "retry=2026-01-01T00:00:00Z")
    try spool.write("partial/a", due)
    try spool.makeDue("a")
    let result = try await spoolrun("--once", spool.root)
    #expect(spool.places(of: "a") == ["done/a"], "\(result)")
    #expect(server.requests.map(\.target) == ["/x", "/busy"])
  }

  @Test func statusTells() async throws {
    let spool = try spool(refusing: true)
    try spool.drop("a", "\(server.url("/x"))\n")
    _ = try await spoolrun("--once", spool.root)
    let table = try await spoolrun("status", spool.root).output
    #expect(table.contains("1 retrying") && table.contains("waits for its delivery"), "\(table)")
    #expect(try await spoolrun("status", "--json", spool.root).output.contains(#""delivery":"waiting""#))
    _ = try await spoolrun("hold", "--spool", spool.root, "a")
    #expect(try await spoolrun("status", spool.root).output.contains("waits for its delivery"))
  }

  /// What a person does while it waits: pause, resume with another text, cancel.
  @Test(arguments: ["", "attempts: 3\n"])
  func aPauseLosesNothing(edit: String) async throws {
    let spool = try spool(refusing: true)
    try spool.drop("a", "url: \(server.url("/x"))\n")
    _ = try await spoolrun("--once", spool.root)
    try spool.move("partial/a", "hold/a")
    let text = try spool.text("hold/a")
    if !edit.isEmpty { try spool.write("hold/a", edit + text) }
    try spool.move("hold/a", "new/a")
    accept(spool)
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && server.requests.count == 1, "\(result)\n\(spool.listing(of: "a"))")
    #expect(try receipt(spool)["delivered"] != nil && spool.told("delivered").count == 2)
  }

  @Test func aCancelledJobLeavesItsPayload() async throws {
    let spool = try spool(refusing: true)
    try spool.drop("a", "url: \(server.url("/x"))\noutput: a\n")
    _ = try await spoolrun("--once", spool.root)
    try await spoolrun("cancel", "--spool", spool.root, "a").exits(0)
    #expect(spool.places(of: "a") == [] && spool.names("partial") == [])
    #expect(try spool.payload("a") == bytes)
  }

  /// A worker that dies while the hook runs has not delivered, whatever the hook does later.
  @Test(arguments: ["kill", "stop", "stop both", "hold", "cancel"])
  func whileItRuns(end: String) async throws {
    let spool = try spool("echo $$ >>\"$SPOOLRUN_SPOOL/pids\"; test -e \"$SPOOLRUN_SPOOL/go\" || exec sleep 600")
    try spool.drop("a", "url: \(server.url("/x"))\noutput: a\n")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("the hook runs") { spool.told("pids").count == 1 }
    #expect(try await spoolrun("status", spool.root).output.contains("waits for its delivery"))
    #expect(try spool.payload("a") == bytes, "it is published by then")
    let pid = try #require(spool.told("pids").first.flatMap { pid_t($0) })
    switch end {
    case "kill": worker.send(signal: SIGKILL)
    case "stop": worker.send(signal: SIGTERM)
    case "stop both":
      // As by systemd. The worker may see the hook's end first.
      worker.send(signal: SIGSTOP)
      kill(-pid, SIGTERM)
      worker.send(signal: SIGTERM)
      worker.send(signal: SIGCONT)
    default: try await spoolrun(end, "--spool", spool.root, "a").exits(0)
    }
    let result = try await worker.result()
    if end == "kill" { kill(-pid, SIGKILL) }
    try await waitUntil("the hook has ended") { try isProcessGroupGone(pid) }
    try spool.write("go", [])
    if end == "cancel" {
      #expect(result.status == .exited(0) && spool.places(of: "a") == [] && spool.names("partial") == [])
      return
    }
    if end == "hold" { try spool.move("hold/a", "new/a") }
    #expect(result.errors == "", "it is no failure: \(result)")
    try await spool.once(exits: 0)
    #expect(server.requests.count == 1 && spool.told("pids").count == 2, "\(spool.listing(of: "a"))")
    #expect(try receipt(spool)["delivered"] != nil && spool.lines("done/a").count { $0.key == "failed" } == 0)
  }

  /// A delivery may have gone on after the payload was moved: then it is published again.
  @Test func theHookMayMoveThePayload() async throws {
    let spool = try spool(
      """
      cat "$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT" >>"$SPOOLRUN_SPOOL/there"; rm "$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT"
      test $(wc -l <"$SPOOLRUN_SPOOL/there") -gt 1
      """)
    try spool.drop("a", "\(server.url("/x"))\n")
    try await spool.once(exits: 75)
    try spool.makeDue("a")
    try await spool.once(exits: 0)
    #expect(server.requests.count == 1 && spool.told("there").count == 2 && spool.payloads == [])
  }

  /// A worker that died after its receipt has only the move to `done/` left, wherever the payload is by then.
  @Test(arguments: [false, true]) func whatWasDeliveredIsDeliveredOnce(hasData: Bool) async throws {
    let spool = try spool(
      """
      cd "$SPOOLRUN_SPOOL" && echo x >>there && ln "partial/$SPOOLRUN_JOB.part" kept
      rm "$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT"
      """)
    try spool.drop("a", "\(server.url("/x"))\n")
    try await spool.once(exits: 0)
    try spool.move("done/a", "cur/a:\(try hostName()).1.0000000a")
    if hasData { try spool.move("kept", "partial/a.part") }
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.places(of: "a") == ["done/a"], "\(result)")
    #expect(server.requests.count == 1 && spool.told("there").count == 1 && spool.payloads == [])
    #expect(spool.names("partial") == [])
  }

  /// The file that was moved away is somebody else's: the payload is published again as a file of its own.
  @Test(arguments: ["due", "failed", "held"])
  func whatTheHookMovedIsPublishedAgain(state: String) async throws {
    let spool = try spool(
      """
      test -e "$SPOOLRUN_SPOOL/moved" && exit
      mv "$SPOOLRUN_DIRECTORY/$SPOOLRUN_OUTPUT" "$SPOOLRUN_SPOOL/moved"; exit 1
      """)
    try spool.drop("a", "url: \(server.url("/x"))\noutput: a\n")
    try await spool.once(exits: 75)
    switch state {
    case "due": try spool.makeDue("a")
    case "failed":
      try spool.move("partial/a", "failed/a")
      _ = try await spoolrun("retry", "--spool", spool.root, "a")
    default:
      _ = try await spoolrun("hold", "--spool", spool.root, "a")
      _ = try await spoolrun("release", "--spool", spool.root, "a")
    }
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.places(of: "a") == ["done/a"], "\(result)\n\(spool.listing(of: "a"))")
    #expect(server.requests.map(\.target).count == 1 || state != "due", "\(server.requests)")
    #expect(try spool.payload("a") == bytes && readFile(spool.path("moved")) == bytes)
    #expect(
      fileStatus(spool.path("moved"))?.st_nlink == 1 && spool.names("partial") == [] && spool.names("failed") == [])
  }

  /// A file that was there already is delivered, too: perhaps it never was.
  @Test func anExistingFileIsDelivered() async throws {
    let spool = try spool()
    try spool.write("files/a", bytes)
    try spool.drop("a", "url: http://127.0.0.1:9/a\ncrc32: \(hex8(independentCRC32(bytes)))\n")
    try await spool.once(exits: 0)
    #expect(try receipt(spool)["existing"] == "yes" && spool.told("delivered") == ["a 8 payload"])
  }

  /// It is not the job's own, whatever becomes of its delivery.
  @Test(arguments: ["", "output: b\n"]) func anExistingFileIsNeverTakenBack(edit: String) async throws {
    let spool = try spool(refusing: true)
    try spool.write("files/a", bytes)
    try spool.drop("a", "url: http://127.0.0.1:9/a\ncrc32: \(hex8(independentCRC32(bytes)))\n")
    try await spool.once(exits: 75)
    _ = try await spoolrun("hold", "--spool", spool.root, "a")
    let text = try spool.text("hold/a")
    if !edit.isEmpty { try spool.write("hold/a", edit + text) }
    _ = try await spoolrun("release", "--spool", spool.root, "a")
    let result = try await spoolrun("--once", spool.root)
    #expect(try spool.payload("a") == bytes, "\(result)\n\(spool.listing(of: "a"))")
  }

  /// No more of them run at a time than transfers may, and each job gets its turn.
  @Test func onlySoManyAtATime() async throws {
    let spool = try spool(
      """
      cd "$SPOOLRUN_SPOOL"; mkdir "now-$SPOOLRUN_JOB"; ls -d now-* | wc -l >>most
      sleep 0.2; rmdir "now-$SPOOLRUN_JOB"
      """)
    for number in 1...6 { try spool.drop("\(number)", "url: \(server.url("/x"))\noutput: \(number)\n") }
    let result = try await spoolrun("--once", "-j", "2", spool.root)
    #expect(result.status == .exited(0) && spool.names("done").count == 6, "\(result)")
    #expect(spool.told("most").count == 6 && spool.told("most").allSatisfy { Int($0) ?? 9 <= 2 })
  }

  @Test(.enabled("needs rclone") { try await Need.program("rclone").isMet() })
  func theExampleForRclone() async throws {
    let spool = try TemporarySpool()
    let hook = try readFile("\(SourceTree.root)/contrib/hooks/deliver")
    try spool.install("deliver", "")
    try spool.write("hooks/deliver", hook)
    try spool.drop("a", "url: \(server.url("/x"))\noutput: d/a\n")
    let environment = ["RCLONE_DESTINATION": spool.path("there"), "RCLONE_CONFIG": "/dev/null"]
    let result = try await spoolrun("--once", "-v", spool.root, environment: environment)
    #expect(try readFile(spool.path("there/d/a")) == bytes, "\(result)")
  }
}
