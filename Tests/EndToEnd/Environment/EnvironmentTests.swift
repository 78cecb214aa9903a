import Glibc
import TestSupport
import Testing

/// A machine without network, without room, or with a spool that cannot be written. Each in namespaces of its own
/// (unshare(1)), which end with it.
@Suite(
  .enabled("needs root, a network and a mount namespace, and python3") {
    try await Need.areMet(.networks, .mounts, .program("python3"))
  })
struct EnvironmentTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  private let noNetwork = ["/usr/bin/unshare", "--net"]

  /// Neither an address nor a name can be reached: that is nobody's failure, and costs no attempt.
  @Test func noNetworkBurnsNoAttempt() async throws {
    // TEST-NET-1 (RFC 5737) and a name that never resolves (RFC 6761).
    try spool.drop("address", "url: http://192.0.2.1/a\nattempts: 1\n")
    try spool.drop("name", "url: http://host.invalid/a\nattempts: 1\noutput: b\n")
    for _ in 1...3 {
      let result = try await spoolrun("--once", spool.root, prefix: noNetwork).exits(75)
      #expect(result.errors.split(separator: "\n").count == 1, "one line: \(result.errors)")
      for job in ["address", "name"] {
        #expect(spool.places(of: job) == ["partial/\(job)"])
        let record = try spool.lastFailure("partial/\(job)")
        #expect(
          record["code"] == "no-network" && record["burned"] == "no" && record["class"] == "temporary", "\(record)")
        #expect(record["attempt"] == "1" && record["retry"] != nil)
        try spool.makeDue(job)
      }
    }
  }

  /// One that is given up meanwhile is told by itself.
  @Test func aJobThatExpiresWithoutANetwork() async throws {
    try spool.install("failed", "echo x >>$SPOOLRUN_SPOOL/told")
    for number in 0..<3 { try spool.drop("job-\(number)", "url: http://192.0.2.1/\(number)\n") }
    let soon = try await runTool(["/usr/bin/date", "-u", "-d", "30 seconds", "+%FT%TZ"]).output.filter { $0 != "\n" }
    try spool.drop("late", "url: http://192.0.2.1/a\nexpires: \(soon)\n")
    let result = try await spoolrun("--once", "--jobs", "1", spool.root, prefix: noNetwork)
    #expect(spool.names("failed").contains("late") && spool.names("partial").count == 3, "\(result)")
    #expect(result.errors.split(separator: "\n").count == 2, "\(result.errors)")
    #expect(try readFile(spool.path("told")) == Array("x\n".utf8))
  }

  /// But a server on this very machine that refuses is a server that refuses.
  @Test func loopbackNeedsNoNetwork() async throws {
    try spool.drop("a", "url: http://127.0.0.1:9/a\nattempts: 1\n")
    // SIOCSIFFLAGS with IFF_UP (netdevice(7)): loopback is down in a new namespace.
    let up = """
      import fcntl, os, socket, struct, sys
      fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))
      os.execv(sys.argv[1], sys.argv[1:])
      """
    try await spoolrun("--once", spool.root, prefix: noNetwork + ["/usr/bin/python3", "-c", up]).exits(75)
    #expect(try spool.lastFailure("partial/a")["code"] == "connect")
  }

  /// Runs shell commands in a mount namespace of their own.
  private func mounted(_ script: String, _ arguments: [String]) async throws -> CommandResult {
    try await run(["/usr/bin/unshare", "--mount", "/bin/sh", "-euc", script] + arguments)
  }

  /// 2 MB of room for 3 MB of payload, whose size the server tells at once, or not at all.
  @Test(arguments: [true, false])
  func diskFullBurnsNoAttempt(isLengthKnown: Bool) async throws {
    let body: [UInt8] = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    let server = try ScriptedServer { request, reply in
      let start = request.rangeStart ?? 0
      var fields = [
        "ETag: \"v1\"", isLengthKnown ? "Content-Length: \(body.count - start)" : "Transfer-Encoding: chunked",
      ]
      if start > 0 { fields.append("Content-Range: bytes \(start)-\(body.count - 1)/\(body.count)") }
      try reply.head(start > 0 ? "206 Partial Content" : "200 OK", fields)
      if isLengthKnown { return try reply.send(body[start...]) }
      try reply.send(String(body.count - start, radix: 16) + "\r\n")
      try reply.send(body[start...])
      try reply.send("\r\n0\r\n\r\n")
    }
    try spool.drop("a", "url: \(server.url("/a"))\nattempts: 1\n")
    // Inside: a full file system twice, then one with room. The copies are what it looked like after each.
    let script = """
      mount -t tmpfs -o size=2m,mode=700 none "$2/small"
      cp -a "$1/." "$2/small/"
      for round in 1 2; do
        status=0; "$0" --once "$2/small" 2>"$2/errors-$round" || status=$?
        echo "$status"
        mkdir "$2/after-$round"; cp -a "$2/small/." "$2/after-$round/"
        touch "$2/small/partial/a"
      done
      mount -o remount,size=16m "$2/small"
      "$0" --once "$2/small"
      mkdir "$2/after-3"; cp -a "$2/small/." "$2/after-3/"
      """
    let directory = try TemporaryDirectory()
    #expect(mkdir("\(directory.path)/small", 0o700) == 0)
    let result = try await mounted(script, [try productPath("spoolrun"), spool.root, directory.path]).exits(0)
    #expect(result.output == "75\n75\n", "\(result)")
    for round in 1...2 {
      let text = try readText("\(directory.path)/after-\(round)/partial/a")
      let records = text.split(separator: "\n").filter { $0.hasPrefix("failed: ") }
      #expect(records.count == round, "\(text)")
      for record in records {
        #expect(
          record.contains(" attempt=1 class=temporary code=disk-full ") && record.contains(" burned=no "), "\(record)")
      }
      #expect(names(in: "\(directory.path)/after-\(round)/files") == [])
      let errors = try readText("\(directory.path)/errors-\(round)")
      #expect(errors.contains("a: disk-full: "), "\(errors)")
    }
    #expect(try readFile("\(directory.path)/after-3/files/a") == body)
    let done = try readText("\(directory.path)/after-3/done/a")
    #expect(done.split(separator: "\n").last?.contains(" attempts=1 ") == true, "\(done)")
    if isLengthKnown {
      #expect(
        names(in: "\(directory.path)/after-1/partial") == ["a"],
        "a body that has no room is refused before its first byte")
      #expect(server.requests.map { $0.rangeStart == nil } == [true, true, true])
    }
  }

  /// Not even room for an inode or a journal line: an error and a status of the table, and the job stays.
  @Test func nothingFitsAnyMore() async throws {
    let server = try simpleServer()
    try spool.drop("a", "\(server.url("/a"))\n")
    let script = """
      mount -t tmpfs -o size=1m,mode=700 none "$2/small"
      cp -a "$1/." "$2/small/"
      head -c 2m /dev/zero > "$2/small/filler" 2>/dev/null || true
      status=0; "$0" --once "$2/small" || status=$?
      echo "$status"
      rm "$2/small/filler"
      touch "$2"/small/partial/* || true
      "$0" --once "$2/small"
      cat "$2/small/files/a"
      """
    let directory = try TemporaryDirectory()
    #expect(mkdir("\(directory.path)/small", 0o700) == 0)
    let result = try await mounted(script, [try productPath("spoolrun"), spool.root, directory.path]).exits(0)
    let lines = result.output.split(separator: "\n")
    #expect(["73", "74", "75"].contains(lines.first) && lines.last == "payload", "\(result)")
  }

  /// Nothing to do there is nothing to complain of; a job that cannot be claimed is.
  @Test(arguments: ["new", "partial"])
  func readOnlySpool(state: String) async throws {
    let server = try simpleServer()
    let script = """
      mount --bind "$1" "$1"
      mount -o remount,bind,ro "$1"
      exec "$0" --once "$1"
      """
    let program = try productPath("spoolrun")
    try await mounted(script, [program, spool.root]).exits(0)

    try spool.drop("a", "\(server.url("/a"))\n")
    if state == "partial" { try spool.move("new/a", "partial/a") }
    try setModificationTime(spool.path("\(state)/a"), secondsFromNow: -100_000)
    let result = try await mounted(script, [program, spool.root]).exits(74)
    #expect(result.errors.contains("Read-only file system") && result.errors.contains(spool.root), "\(result)")
    #expect(spool.places(of: "a") == ["\(state)/a"] && server.requests.isEmpty)
    let add = try await mounted(
      "mount --bind \"$1\" \"$1\"; mount -o remount,bind,ro \"$1\"; exec \"$0\" add --spool \"$1\" http://h/b",
      [program, spool.root])
    #expect(add.exitStatus == 73, "\(add)")
  }

  /// Another user's spool: neither read nor written.
  @Test(.enabled("needs root, to be another user") { try await Need.users.isMet() })
  func notOurs() async throws {
    try spool.drop("a", "http://127.0.0.1:9/a\n")
    // Everything above it may be passed, so that only the spool's own mode bars the way; and so may the program.
    let program = "/proc/self/fd/3"
    let result = try await run([
      "/bin/sh", "-c",
      "exec 3<\"$0\"; exec /usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups \(program) --once \"$1\"",
      try productPath("spoolrun"), spool.root,
    ])
    #expect(result.exitStatus == 66, "\(result)")
    #expect(result.errors.contains("Permission denied"))
    #expect(spool.places(of: "a") == ["new/a"])
  }
}
