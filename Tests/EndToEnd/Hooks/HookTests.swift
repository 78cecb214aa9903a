import Glibc
import TestSupport
import Testing

/// The programs in `hooks/`.
@Suite struct HookTests {
  private let server: ScriptedServer
  private let spool: TemporarySpool

  init() throws { (server, spool) = (try simpleServer(), try TemporarySpool()) }

  @Test func verifyMayRejectBeforeAnythingIsPublished() async throws {
    // It sees the whole payload, and that it has no final name yet.
    try spool.install(
      "verify",
      """
      test ! -e "$SPOOLRUN_SPOOL/files/$SPOOLRUN_OUTPUT" && test "$SPOOLRUN_JOB" = good &&
      cmp -s "$SPOOLRUN_PAYLOAD" - <<.
      payload
      .
      """)
    for name in ["good", "bad"] { try spool.drop(name, "url: \(server.url("/x"))\noutput: \(name)\n") }
    try await spool.once(exits: 75)
    #expect(spool.payloads == ["good"] && spool.places(of: "good") == ["done/good"])
    let record = try spool.lastFailure("partial/bad")
    #expect(record["code"] == "rejected" && record["class"] == "temporary")
    #expect(try readFile(spool.path("failed/bad.part")) == Array("payload\n".utf8), "set aside, and not resumed")
  }

  @Test func doneAndFailedAreTold() async throws {
    // So large that it has a rate, however slowly it comes.
    let body = [UInt8](repeating: 7, count: 100_000)
    let server = try simpleServer(body)
    for hook in ["done", "failed"] {
      try spool.install(hook, "env | grep ^SPOOLRUN_ | sort >\"$SPOOLRUN_SPOOL/told-$SPOOLRUN_JOB\"")
    }
    // Nothing of a job is a command.
    let url = server.url("/a?secret=1").replacing("http://", with: "http://us3r:secret@")
    try spool.drop("$(touch x)", "url: \(url)\noutput: d/a\n")
    try spool.drop("dir", "url: \(server.url("/404?dir"))\noutput: d/\n")
    let sum = String(repeating: "a", count: 64)
    let wish = "output: d/gone\nsize: 9\nsha256: \(sum)\n"
    try spool.drop("gone", "url: \(server.url("/404").replacing("//", with: "//me:s3cret@"))?k=s3cret\n\(wish)")
    try spool.drop("later", "url: \(server.url("/503"))\n")
    try await spool.once(exits: 1)
    let done = try spool.text("told-$(touch x)")
    for fact in [
      "SPOOLRUN_OUTPUT=d/a", "SPOOLRUN_SIZE=100000", "SPOOLRUN_ATTEMPTS=1", "SPOOLRUN_FETCHED=100000",
      "SPOOLRUN_CRC32=\(hex8(independentCRC32(body)))", "SPOOLRUN_URL=\(server.url("/a"))",
    ] {
      #expect(done.contains("\(fact)\n"), "\(done)")
    }
    #expect(!done.contains("secret"))
    #expect(fileStatus(spool.path("told-later")) == nil, "it is only told of jobs that are given up")
    let failed = try spool.text("told-gone")
    for fact in [
      "CODE=http-404", "CLASS=permanent", "ATTEMPTS=1", "SIZE=9", "SHA256=\(sum)", "MD5=", "AT=0", "EXPECTED=",
      "OUTPUT=d/gone", "URL=\(server.url("/404"))",
    ] {
      #expect(failed.contains("SPOOLRUN_\(fact)\n"), "\(fact): \(failed)")
    }
    #expect(failed.contains(/SPOOLRUN_SECONDS=[0-9]+\n/) && done.contains(/SPOOLRUN_RATE=[1-9][0-9]*\n/), "\(done)")
    #expect(done.contains("\nSPOOLRUN_SECONDS=") && spool.told("told-dir").contains("SPOOLRUN_OUTPUT=d/404"))
    #expect(!failed.contains("s3cret"))
  }

  /// What is no job, and a job with a wrong line, are given up like others. The run ends when the hook has.
  @Test func failedIsToldOfWhatIsRejected() async throws {
    try spool.install("failed", "sleep 0.2; env | grep ^SPOOLRUN_ | sort >\"$SPOOLRUN_SPOOL/told-$SPOOLRUN_JOB\"")
    try spool.drop("bad", "url: http://127.0.0.1:9/x\nsise: 1\n")
    try #require(mkfifo(spool.path("new/pipe"), 0o600) == 0)
    try #require(mkfifo(spool.path("failed/pipe"), 0o600) == 0)
    try spool.drop("worse", "url: nowhere\n")
    try await spool.once(exits: 1)
    func told(_ job: String) throws -> [Substring] {
      try spool.text("told-\(job)").split(separator: "\n")
    }
    for (job, line, attempts, reason) in [
      ("bad", "2", "0", "unknown key `sise`"), ("pipe~2", "", "0", "not a regular file"), ("worse", "1", "1", "url"),
    ] {
      let facts = try told(job)
      for fact in ["HOOK=failed", "CODE=malformed", "LINE=\(line)", "ATTEMPTS=\(attempts)", "JOB=\(job)"]
        + (job == "bad" ? ["OUTPUT="] : [])
      {
        #expect(facts.contains("SPOOLRUN_\(fact)"), "\(fact): \(facts)")
      }
      #expect(facts.contains { $0.hasPrefix("SPOOLRUN_REASON=") && $0.contains(reason) }, "\(facts)")
    }
  }

  /// They need no transfer of this run to be told of it.
  @Test func doneKnowsAFileThatWasThereAlready() async throws {
    let payload = Array("payload\n".utf8)
    try spool.install("done", "env >\"$SPOOLRUN_SPOOL/told\"")
    try spool.write("files/a", payload)
    try spool.drop("a", "url: http://127.0.0.1:9/a\ncrc32: \(hex8(independentCRC32(payload)))\n")
    try await spool.once(exits: 0)
    let told = try spool.text("told")
    #expect(
      told.contains("SPOOLRUN_SIZE=8\n") && told.contains("SPOOLRUN_CRC32=\(hex8(independentCRC32(payload)))\n"),
      "\(told)")
  }

  /// A worker that died before it moved the job had not told anybody.
  @Test func failedIsToldByWhoFinishesTheRecord() async throws {
    try spool.install("failed", "env >\"$SPOOLRUN_SPOOL/told\"")
    let host = try hostName()
    let record = "failed: 2026-11-21T03:00:00Z attempt=1 class=permanent code=http-404 at=0 reason=\"gone for good\"\n"
    try spool.write("cur/a:\(host).1.0000000a", "url: http://127.0.0.1:9/a\n\(record)")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.errors == "spoolrun: a: http-404: gone for good; given up: see failed/a\n", "\(result)")
    #expect(spool.places(of: "a") == ["failed/a"])
    let told = try spool.text("told")
    for fact in ["CODE=http-404", "REASON=gone for good", "ATTEMPTS=1"] {
      #expect(told.contains("SPOOLRUN_\(fact)\n"), "\(told)")
    }
  }

  /// A name is bytes, and so is what stands in an environment.
  @Test func aPayloadWhoseNameIsNoTextIsFound() async throws {
    try spool.install("verify", "cmp -s \"$SPOOLRUN_PAYLOAD\" - <<.\npayload\n.")
    let drop = "printf 'url: \(server.url("/x"))\\noutput: a\\n' >\"$(printf 'new/\\377')\""
    try await runTool(["/bin/sh", "-euc", drop], directory: spool.root)
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(0) && spool.payloads == ["a"], "\(result)")
  }

  /// Where nobody waits for children, wait(2) knows nothing of how they end.
  @Test(.enabled("needs python3") { try await Need.program("python3").isMet() })
  func aNoIsHeardThoughTheCallerIgnoresChildren() async throws {
    try spool.install("verify", "exit 1")
    try spool.drop("a", "\(server.url("/x"))\n")
    let ignoring =
      "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    let result = try await spoolrun("--once", spool.root, prefix: ["/usr/bin/env", "python3", "-c", ignoring])
    #expect(result.status == .exited(75) && spool.payloads == [], "\(result)")
    #expect(try spool.lastFailure("partial/a")["code"] == "rejected")
  }

  /// Whatever it says is for the log, and changes nothing that is done.
  @Test func outputIsLoggedAndFailureIsNoFailureOfTheJob() async throws {
    try spool.install("done", "printf 'one\\nt\\033[2Jwo\\n'; exit 3")
    try spool.drop("a", "\(server.url("/x"))\n")
    let result = try await spoolrun("--once", "-v", spool.root)
    #expect(result.status == .exited(0) && spool.places(of: "a") == ["done/a"])
    let lines = result.errors.split(separator: "\n").map { $0.split(separator: " ").dropFirst().joined(separator: " ") }
    #expect(
      Array(lines.suffix(3)) == [
        "hook-output job=a hook=done text=one", #"hook-output job=a hook=done text="t\\x1b[2Jwo""#,
        #"hook-failed job=a hook=done reason="exit status 3: t\\x1b[2Jwo""#,
      ], "\(result)")
    try spool.drop("b", "\(server.url("/y"))\n")
    try await spoolrun("--once", spool.root).exits(0, saying: "b: hook-failed: ")
  }

  /// Killed, or not even asked, it has said nothing of the data: that stays, and the hook is asked again.
  @Test(arguments: ["kill -TERM $$", "exit 127", "no-such-tool", "sh -c 'kill -TERM $$'"])
  func noAnswerIsNoNo(script: String) async throws {
    try spool.install("verify", script)
    try spool.drop("a", "url: \(server.url("/a"))\nurl: \(server.url("/b"))\n")
    try await spool.once(exits: 75)
    let record = try spool.lastFailure("partial/a")
    #expect(record["code"] == "hook" && record["class"] == "temporary" && record["at"] == "8")
    #expect(spool.names("partial").contains("a.part") && spool.names("failed") == [] && spool.payloads == [])
    try spool.install("verify", "exit 0")
    try spool.makeDue("a")
    try await spool.once(exits: 0)
    #expect(server.requests.count == 1, "it is not fetched again")
    #expect(try spool.payload("a") == Array("payload\n".utf8))
  }

  /// A worker that is to stop tells its hook, and waits no longer than a few seconds. A `verify` that was told has not
  /// judged, whatever it ends with.
  @Test(arguments: ["verify", "done", "failed"], ["exit 1", ""])
  func aStopEndsTheHookToo(hook: String, reaction: String) async throws {
    try spool.install(
      hook, "trap '\(reaction)' TERM; echo $$ >\"$SPOOLRUN_SPOOL/pid\"; while :; do sleep 600 & wait $!; done")
    try spool.drop("a", "\(server.url(hook == "failed" ? "/404" : "/a"))\n")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("the hook runs") { (try? readFile(spool.path("pid")).last) == 0x0A }
    let result = try await worker.stop()
    let pid = try #require(pid_t(String(decoding: try readFile(spool.path("pid")).dropLast(), as: UTF8.self)))
    try await waitUntil("all of it is gone") { try isProcessGroupGone(pid) }
    switch hook {
    case "verify":
      #expect(result.status == .exited(75) && result.errors == "", "\(result)")
      #expect(try spool.lines("partial/a").last?.key == "interrupted")
      #expect(spool.length("partial/a.part") == 8 && spool.names("failed") == [])
    case "done": #expect(result.status == .exited(0) && spool.payloads == ["a"], "\(result)")
    default: #expect(result.status == .exited(1) && spool.places(of: "a") == ["failed/a"], "\(result)")
    }
  }

  /// As does whoever holds or cancels its job.
  @Test func aGestureEndsTheHookToo() async throws {
    try spool.install("verify", "touch \"$SPOOLRUN_SPOOL/runs\"; exec sleep 600")
    try spool.drop("a", "\(server.url("/a"))\n")
    let worker = try startSpoolrun(["--once", spool.root])
    try await waitUntil("the hook runs") { fileStatus(spool.path("runs")) != nil }
    try spool.move(try spool.claim(of: "a"), "hold/a")
    try await worker.result().exits(0)
    #expect(try spool.lines("hold/a").last?.key == "interrupted" && spool.length("partial/a.part") == 8)
  }

  /// The receipt would be untrue, and so would what an attempt goes on from.
  @Test(arguments: [
    ("printf X | dd of=\"$SPOOLRUN_PAYLOAD\" conv=notrunc", "crc32"), ("echo more >>\"$SPOOLRUN_PAYLOAD\"", "size"),
    (": >\"$SPOOLRUN_PAYLOAD\"", "size"),
    // Not even with the old time, or where it says nothing of the data.
    (
      "touch -r \"$SPOOLRUN_PAYLOAD\" t; printf X | dd of=\"$SPOOLRUN_PAYLOAD\" conv=notrunc; "
        + "touch -r t \"$SPOOLRUN_PAYLOAD\"",
      "crc32"
    ),
    ("printf X | dd of=\"$SPOOLRUN_PAYLOAD\" conv=notrunc; kill -9 $$", "crc32"),
  ])
  func aHookThatChangesThePayloadIsFound(script: String, what: String) async throws {
    try spool.install("verify", "cd \"$SPOOLRUN_SPOOL\" || exit 9\n\(script)")
    // One attempt: after a mismatch the next one is due in 4 seconds, which may be before a slow run has ended.
    try spool.drop("a", "url: \(server.url("/a"))\nurl: \(server.url("/b"))\nattempts: 1\n")
    try await spool.once(exits: 1)
    let record = try spool.lastFailure("failed/a")
    #expect(record["code"] == "hook-changed" && record["class"] == "temporary", "\(record)")
    let sum = hex8(independentCRC32(Array("payload\n".utf8)))
    #expect(record["expected"] == (what == "size" ? "8" : sum))
    #expect(spool.payloads == [] && spool.length("partial/a.part") < 0)
    #expect(server.requests.count == 1, "no other mirror can help")
    // Set aside as any mismatch, where there is anything.
    let aside = try readFile(spool.path("failed/a.part"))
    #expect(aside.count == Int(record["found"] ?? "") || hex8(independentCRC32(aside)) == record["found"])
  }

  /// What leaves the data as it is, is no change.
  @Test(arguments: ["chmod 640 \"$SPOOLRUN_PAYLOAD\"", "touch \"$SPOOLRUN_PAYLOAD\"", "cat \"$SPOOLRUN_PAYLOAD\""])
  func aHookMayTouchThePayload(script: String) async throws {
    try spool.install("verify", script)
    try spool.drop("a", "\(server.url("/a"))\n")
    try await spool.once(exits: 0)
    #expect(try spool.payload("a") == Array("payload\n".utf8))
  }

  /// What others can write would run as us; and what cannot be run must not count as consent.
  @Test(arguments: [
    (change: "chmod 722 hooks/verify", advice: "chmod go-w"), (change: "chmod 770 hooks/verify", advice: "chmod go-w"),
    (change: "chmod 777 hooks", advice: "chmod go-w"), (change: "chmod 600 hooks/verify", advice: "chmod +x"),
    (change: "mv hooks/verify hooks/x; ln -s x hooks/verify", advice: "not a regular file"),
    (change: "mv hooks x; ln -s x hooks", advice: "not a directory"),
    (change: "sed -i 's,/bin/sh,\(nowhere),' hooks/verify", advice: "cannot be run"),
  ])
  func aHookThatCannotBeTrustedIsNotRun(change: String, advice: String) async throws {
    try await expectRefusal(change: change, advice: advice)
  }

  @Test(.enabled("needs root, to give files away") { try await Need.users.isMet() })
  func aHookOfAnotherUserIsNotRun() async throws {
    try await expectRefusal(change: "chown 65534 hooks/verify", advice: "belongs to another user")
  }

  private func expectRefusal(change: String, advice: String) async throws {
    let server = try simpleServer()
    let spool = try TemporarySpool()
    try spool.install("verify", "touch \"$SPOOLRUN_SPOOL/ran\"")
    try await runTool(["/bin/sh", "-euc", change], directory: spool.root)
    try spool.drop("a", "\(server.url("/x"))\n")
    let result = try await spoolrun("--once", spool.root)
    #expect(result.status == .exited(75) && result.errors.contains(advice), "\(result)")
    #expect(fileStatus(spool.path("ran")) == nil && spool.payloads == [])
  }

  /// While one is told, another transfer has the connection.
  @Test(.timeLimit(.minutes(30)), arguments: ["done", "failed"])
  func aHookKeepsNoTransferFromItsStart(hook: String) async throws {
    let script = "test $SPOOLRUN_JOB = second || until test -e \"$SPOOLRUN_SPOOL/files/second\"; do sleep 0.05; done"
    try spool.install(hook, script)
    // In the order of their times.
    try spool.drop("first", "url: \(server.url(hook == "done" ? "/x" : "/404"))\noutput: first\n")
    try setModificationTime(spool.path("new/first"), secondsFromNow: -100)
    try spool.drop("second", "url: \(server.url("/x"))\noutput: second\n")
    try await spool.once("--jobs", "1", exits: hook == "done" ? 0 : 1)
    #expect(spool.payloads.contains("second"))
  }
}
