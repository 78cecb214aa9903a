import Glibc
import TestSupport
import Testing

/// `subscribe`, and what a person does with standing orders.
@Suite struct OrderGestureTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  private func command(_ spool: TemporarySpool, _ arguments: String...) async throws -> CommandResult {
    try await spoolrun(arguments, environment: ["SPOOLRUN_SPOOL": spool.root])
  }

  /// In a spool of version 0.1, which has no `standing`.
  @Test func `subscribe writes an order`() async throws {
    let server = try FeedServer(podcast(1...3))
    let url = server.url("/list.rss")
    var result = try await command(spool, "subscribe", url, "--first", "2", "-o", "pods/")
    #expect(result.status == .exited(0) && result.output == "127.0.0.1-list.rss\n" && result.errors == "", "\(result)")
    let text = try spool.text("standing/127.0.0.1-list.rss")
    #expect(text == "url: \(url)\noutput: pods/\nevery: 6h\nfirst: 2\n")
    result = try await command(spool, "subscribe", url)
    let name = "127.0.0.1-list.rss"
    let named = "--spool \(spool.root) \(name)"
    #expect(result.status == .exited(1) && result.output == "\(name)\n", "\(result)")
    #expect(
      result.errors.hasSuffix(
        "already there, as standing/\(name), with other options; nothing is changed; to change it: "
          + "spoolrun hold \(named), edit \(spool.path("hold/\(name)")), spoolrun release \(named)\n"), "\(result)")
    for (place, advice) in [
      ("standing", ""), ("hold", "; to have it checked: spoolrun release \(named)"),
      ("failed", "; to have it checked: spoolrun retry \(named)"),
    ] {
      if place != "standing" { try spool.move("standing/\(name)", "\(place)/\(name)") }
      result = try await command(spool, "subscribe", url, "-o", "pods/", "--first", "2").exits(0)
      #expect(result.errors.hasSuffix("as \(place)/\(name); nothing is changed\(advice)\n"), "\(result)")
      if place != "standing" { try spool.move("\(place)/\(name)", "standing/\(name)") }
    }
    #expect(try await spool.once().status == .exited(0) && spool.payloads == ["pods/2.mp3", "pods/3.mp3"])
    result = try await command(
      spool, "subscribe", server.url("/other"), "--name", "127.0.0.1-list.rss", "--every", "1d", "--entries", "list",
      "--match", "*.iso")
    #expect(result.output == "127.0.0.1-list.rss~2\n", "\(result)")
    // The advice has the name that the file has, and not as it is shown.
    for every in ["1d", "2d"] {
      result = try await command(spool, "subscribe", server.url("/third"), "--name", "a\\b", "--every", every)
    }
    #expect(result.errors.contains("edit $'\(spool.path("hold/a"))\\134b', "), "\(result)")
  }

  @Test func `commands at the same time subscribe once, and wait for one that is stopped`() async throws {
    let other = open(spool.path("tmp"), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(other >= 0 && flock(other, LOCK_EX | LOCK_NB) == 0)
    let log = spool.path("log")
    let commands = try (0..<3).map { _ in
      try startSpoolrun(
        ["subscribe", "--name", "x", "http://127.0.0.1:9/x"], environment: ["SPOOLRUN_SPOOL": spool.root],
        prefix: ["/bin/sh", "-c", "exec \"$@\" 2>>\(log)", "sh"])
    }
    try await waitUntil("they say that they wait") {
      ((try? readFile(log)).map { String(decoding: $0, as: UTF8.self) } ?? "")
        .split(separator: "\n").count { $0.contains("waiting until another command has") } == 3
    }
    #expect(spool.names("standing") == [])
    close(other)
    for command in commands {
      let result = try await command.result()
      #expect(result.status == .exited(0) && result.output == "x\n", "\(result)")
    }
    #expect(spool.names("standing") == ["x"])
  }

  @Test(arguments: [
    ["ftp://127.0.0.1/x"], ["127.0.0.1/x"], ["http://h/x", "--every", "0"], ["http://h/x", "--entries", "html"],
    ["http://h/x", "-o", "file"], ["http://h/x", "--expires", "2020-01-01"], ["http://h/x", "--size", "5"], [],
  ])
  func `what subscribe refuses`(arguments: [String]) async throws {
    let result = try await spoolrun(["subscribe"] + arguments, environment: ["SPOOLRUN_SPOOL": spool.root])
    #expect(result.status == .exited(64) && result.output == "", "\(result)")
    #expect(spool.names("standing") == [])
  }

  @Test func `hold, release and cancel`() async throws {
    let server = try spool.subscribe(to: podcast(1...3), "every: 1d\n")
    try await command(spool, "hold", "pod").exits(0)
    #expect(spool.places(of: "pod") == ["hold/pod"])
    #expect(try await spool.once().status == .exited(0) && server.checks.isEmpty)
    #expect(try await command(spool, "status").output.contains("pod  paused, never checked"))
    try await command(spool, "release", "pod").exits(0)
    #expect(spool.names("standing") == ["pod"])
    #expect(try await spool.once().status == .exited(0) && server.checks.count == 1)
    // Orders are cancelled by name only.
    try await command(spool, "cancel", "--all").exits(0)
    #expect(spool.names("standing") == ["pod"])
    try await command(spool, "hold", "--all").exits(0)
    try await command(spool, "cancel", "--all").exits(0)
    #expect(spool.names("hold") == ["pod"])
    try await command(spool, "release", "--all").exits(0)
    try await command(spool, "cancel", "pod").exits(0)
    #expect(spool.names("standing") == [] && spool.names("done").count == 1)
  }

  @Test func `an order that is held or cancelled while its list comes`() async throws {
    let gate = try Gate()
    let server = try ScriptedServer { _, reply in
      try reply.head("200 OK", ["Content-Length: 100"])
      try reply.stall(until: gate)
    }
    for gesture in ["hold", "cancel"] {
      let spool = try TemporarySpool()
      try spool.order("pod", "url: \(server.url("/list"))\nevery: 1s\ntimeout: 1h\n")
      let earlier = server.requests.count
      let worker = try startSpoolrun(["-v", spool.root])
      try await waitUntil("it is looked at") { spool.names("cur").count == 1 && server.requests.count > earlier }
      let running = try await command(spool, "status").output
      #expect(running.contains("pod  checking, never checked"), "\(running)")
      try await command(spool, gesture, "pod").exits(0)
      let before = server.requests.count
      try await worker.stop().exits(0)
      #expect(spool.places(of: "pod") == (gesture == "hold" ? ["hold/pod"] : []) && spool.names("standing") == [])
      #expect(server.requests.count == before)
    }
  }

  /// It counts as no death of a worker.
  @Test func `a worker that is stopped puts the order back, due`() async throws {
    let gate = try Gate()
    let server = try ScriptedServer { _, reply in
      try reply.head("200 OK", ["Content-Length: 100"])
      try reply.stall(until: gate)
    }
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 1d\ntimeout: 1h\n")
    for round in 1...2 {
      let worker = try startSpoolrun([spool.root])
      try await waitUntil("it is looked at") { server.requests.count == round }
      try await worker.stop().exits(75)
      #expect(spool.names("standing") == ["pod"])
      #expect(fileStatus(spool.path("standing/pod"))!.st_mtim.tv_sec <= time(nil))
      #expect(try spool.lines("standing/pod").last?.key == "interrupted")
    }
  }

  /// Of a job and an order with one name, no command could tell which is meant.
  @Test func `jobs and orders take different names`() async throws {
    let server = try spool.subscribe(to: podcast(1...3), "every: 1d\n")
    let added = try await command(spool, "add", server.url("/x"), "--name", "pod")
    #expect(added.output == "pod~2\n" && added.errors.contains("because the name pod is taken"), "\(added)")
    let list = spool.path("list")
    try writeFile(list, "url: \(server.url("/pod"))\noutput: pod\n")
    for number in [1, 0] {
      let listed = try await command(spool, "add", "--from", list)
      #expect(listed.status == .exited(0) && spool.names("new").count == 2, "\(number) more: \(listed)")
    }
    // As other programs drop jobs.
    try spool.drop("pod", "url: \(server.url("/y"))\noutput: y\n")
    try await command(spool, "hold", "pod").exits(1, saying: "new/pod, standing/pod")
    try await spool.once(exits: 0)
    try await command(spool, "hold", "pod").exits(0)
    #expect(spool.names("hold") == ["pod"] && !spool.names("done").contains("pod"), "\(spool.names("done"))")
  }

  @Test func `status as JSON`() async throws {
    let server = try FeedServer(podcast(1...3))
    try spool.order("pod", "url: \(server.url("/list"))\nevery: 1d\n")
    _ = try await spool.once()
    let json = try await command(spool, "status", "--json").output
    #expect(
      json.contains(#""orders":[{"name":"pod","state":"waiting","checked":"2"#)
        && json.contains(#""entries":3,"next":"2"#),
      "\(json)")
  }
}
