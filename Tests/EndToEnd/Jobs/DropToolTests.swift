import Glibc
import Synchronization
import TestSupport
import Testing

/// Jobs dropped by the tools that people have: each is run once, and only when it is whole.
@Suite struct DropToolTests {
  struct Drop: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Makes `new/x` with an `output:` of `x` as its last line.
    let line: String
    /// It closes the file, without its last newline, before it goes on.
    var hasPauses = false
    /// What of it not every machine has.
    var needs: [Need] {
      (line.contains("scp") ? [.scp] : []) + ["rsync", "python3"].filter(line.contains).map { .program($0) }
    }
  }

  private static let job = #"printf 'url: %s/x\noutput: x\n' "$server""#

  static let drops = [
    Drop(testDescription: "mv", line: "\(job) >tmp/x && mv tmp/x new/"),
    Drop(testDescription: "cp", line: "\(job) >job && cp job new/x"),
    Drop(testDescription: "cp -p of an old file", line: "\(job) >job && touch -d '2 days ago' job && cp -p job new/x"),
    Drop(
      testDescription: "cp -p of a file from the future",
      line: "\(job) >job && touch -d '2 years' job && cp -p job new/x"),
    Drop(testDescription: "scp -p of the same", line: "\(job) >job && touch -d '2 days' job && scp -p -q job new/x"),
    Drop(testDescription: "ln", line: "\(job) >tmp/x && ln tmp/x new/x"),
    Drop(testDescription: ">", line: "\(job) >new/x"),
    Drop(
      testDescription: "> in pieces",
      line: #"{ printf 'url: %s' "$server"; sleep 0.5; printf '/x\n'; sleep 0.5; printf 'output: x\n'; } >new/x"#),
    Drop(
      testDescription: ">> in several writes",
      line: #"printf url: >>new/x; sleep 0.3; printf " $server/" >>new/x; sleep 0.3; "#
        + #"printf 'x\noutput:' >>new/x; sleep 0.3; printf ' x\n' >>new/x"#, hasPauses: true),
    Drop(testDescription: "tee", line: "\(job) | tee new/x >tee"),
    Drop(testDescription: "dd", line: "\(job) | dd of=new/x bs=3 status=none"),
    // It sets the mode by name when it has closed the file: 1 where the worker was quicker.
    Drop(testDescription: "install", line: "\(job) >job && install -m 444 job new/x || test $? = 1"),
    Drop(testDescription: "scp", line: "\(job) >job && scp -q job new/x"),
    Drop(testDescription: "rsync", line: "\(job) >x && rsync --times x new/"),
    // The same, with status 23.
    Drop(testDescription: "rsync --inplace", line: "\(job) >x && rsync --inplace x new/ || test $? = 23"),
    Drop(
      testDescription: "an editor that saves by rename",
      line: "\(job) >new/.x.swp && sleep 0.3 && mv new/.x.swp new/x"),
    Drop(
      testDescription: "Python",
      line: #"python3 -c "import sys; print('url: $server/x\noutput: x', file=open('new/x', 'w'))""#),
    Drop(
      testDescription: "a writer that stays",
      line:
        #"exec 3>new/x; printf 'url: %s/x\n' "$server" >&3; sleep 3; test -e new/x || exit 9; printf 'output: x\n' >&3"#
    ),
  ]

  @Test(.timeLimit(.minutes(30)), arguments: drops)
  func `a drop is run once, and whole`(drop: Drop) async throws {
    for need in drop.needs where try await !need.isMet() {
      // A cancelled case of a test is not printed.
      print("SKIPPED: a drop by \(drop.testDescription) needs \(need.name)")
      try Test.cancel("needs \(need.name)")
    }
    try await replay { try await isRunOnceAndWhole(drop) }
  }

  /// - Returns: false, without a judgement, if the machine stood still in a pause for the 10 s after which a file
  ///   without its last newline is taken for one whose writer has died.
  private func isRunOnceAndWhole(_ drop: Drop) async throws -> Bool {
    let scene = try Scene.echoing()
    let isLate = Mutex(false)
    let end = try await scene.withWorker { _ in
      try await scene.waitForWorker()
      let result = try await scene.shell(drop.line)
      try #require(result.status == .exited(0), "\(result)")
      isLate.withLock { $0 = drop.hasPauses && result.duration > .seconds(8) }
      if isLate.withLock({ $0 }) { return }
      try await waitUntil("x is done") { scene.isDone("x") }
      #expect(scene.spool.payloads == ["first", "x"])
      #expect(try scene.spool.payload("x") == Array("/x".utf8))
      #expect(scene.server.requests(for: "/x").count == 1)
    }
    if isLate.withLock({ $0 }) { return false }
    #expect(end.status == .exited(0), "\(end)")
    #expect(scene.spool.names("failed") == [] && scene.spool.names("partial") == [])
    return true
  }

  @Test(.timeLimit(.minutes(30)))
  func `what a writer left that died midway is set aside with the reason`() async throws {
    let scene = try Scene.echoing()
    _ = try await scene.withWorker { _ in
      try await scene.waitForWorker()
      // Half a URL that would be a valid one, if it ended in a newline.
      let result = try await scene.shell(#"exec 3>new/x; printf 'output: y\nurl: %s/not' "$server" >&3; kill -9 $$"#)
      #expect(result.status == .killed(signal: 9))
      try await waitUntil("x is set aside") { scene.exists("failed/x") }
      let record = try #require(try scene.spool.lines("failed/x").last)
      #expect(record["code"] == "malformed" && record["reason"]?.contains("newline") == true, "\(record)")
      #expect(scene.server.requests.count == 1 && scene.spool.payloads == ["first"])
    }
  }
}
