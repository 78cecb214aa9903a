import Glibc
import TestSupport
import Testing

/// `status --watch` in a terminal: its keys, and what is left of it.
@Suite(.enabled("needs tmux") { try await Need.tmux.isMet() })
struct WatchTests {
  private let spool: TemporarySpool

  init() throws { spool = try TemporarySpool() }

  private func name(_ number: Int) -> String { "job-\(1000 + number)" }

  private func fill(_ count: Int) throws {
    for number in 1...count { try spool.write("new/\(name(number))", "http://h/\(number)\n") }
  }

  /// Starts it, and waits until it shows this.
  private func watch(_ tmux: Tmux, _ options: String = "", until text: String = "q quit") async throws {
    try await tmux.type("\(productPath("spoolrun")) status --watch \(options) \(spool.root)")
    try await tmux.wait(for: "the table") { $0.contains { $0.contains(text) } }
  }

  /// - Parameter last: the last line of the picture. It is drawn last, and tmux may not have had all of it before.
  private func waitForText(_ tmux: Tmux, _ text: String, last: String? = nil) async throws -> [String] {
    try await tmux.wait(for: text) { lines in
      lines.contains { $0.contains(text) } && (last == nil || lines.last == last)
    }
  }

  private static let windows = [(80, 24), (40, 10)]

  @Test(arguments: windows, [5, 500])
  func `numbers are first and keys last, and nothing but the numbers remains`(size: (Int, Int), count: Int) async throws
  {
    try fill(count)
    let tmux = try await Tmux(columns: size.0, rows: size.1)
    try await tmux.type("clear; stty -g")
    let settings = try await tmux.wait(for: "settings") { $0.contains { $0.contains(":") } && $0.contains("ready$") }
    try await watch(tmux)
    #expect(try await tmux.value("#{alternate_on} #{cursor_flag}") == "1 0")
    // What is not a key, and is not echoed.
    try await tmux.press("Enter", "Enter", "x", "F5", "j")
    var lines = try await tmux.wait(for: "the first job") { $0.contains { $0.hasPrefix("> \(name(1))") } }
    #expect(lines[0] == "\(count) waiting" && lines[size.1 - 1].hasSuffix("q quit"), "\(lines)")
    try await tmux.press("G")
    lines = try await tmux.wait(for: "the last job") { $0.contains { $0.hasPrefix("> \(name(count))") } }
    #expect(lines[0] == "\(count) waiting" && lines[size.1 - 1].hasSuffix("q quit"), "\(lines)")
    try await tmux.press("q")
    lines = try await tmux.waitForPrompt()
    #expect(lines.contains("\(count) waiting") && !lines.contains { $0.contains(name(1)) || $0.contains("quit") })
    #expect(try await tmux.value("#{alternate_on} #{cursor_flag}") == "0 1")
    try await tmux.type("clear; stty -g")
    #expect(try await tmux.wait(for: "settings") { $0 == settings } == settings)
  }

  @Test func `each gesture is done to the selected job, and its outcome is shown`() async throws {
    try fill(5)
    try spool.write(
      "failed/bad", "http://h/x\nfailed: 2026-11-21T03:00:41Z attempt=1 class=permanent code=http-404 at=0 reason=x\n")
    let tmux = try await Tmux(columns: 80, rows: 24)
    try await watch(tmux)
    try await tmux.press("h")
    _ = try await waitForText(tmux, "select a job first")
    try await tmux.press("j", "r")
    _ = try await waitForText(tmux, "failed/bad -> new/bad")
    #expect(spool.places(of: "bad") == ["new/bad"])
    // The selection has followed it.
    try await tmux.press("h")
    _ = try await waitForText(tmux, "new/bad -> hold/bad")
    try await tmux.wait(for: "the held job") { $0.contains("hold/: 1 paused") && $0.contains { $0.hasPrefix("> bad") } }
    try await tmux.press("l")
    _ = try await waitForText(tmux, "hold/bad -> new/bad")
    try await tmux.press("p")
    _ = try await waitForText(tmux, "new/bad -> urgent/bad")
    try await tmux.press("c")
    _ = try await waitForText(tmux, "cancel bad and its data? y/n")
    try await tmux.press("n")
    _ = try await waitForText(tmux, "nothing is changed")
    #expect(spool.places(of: "bad") == ["urgent/bad"])
    try await tmux.press("c")
    _ = try await waitForText(tmux, "y/n")
    try await tmux.press("y")
    _ = try await waitForText(tmux, "urgent/bad removed")
    #expect(spool.places(of: "bad") == [])
    try await tmux.wait(for: "the next one") { $0[0] == "5 waiting" && $0.contains { $0.hasPrefix("> \(name(1))") } }
  }

  @Test func `only the job is cancelled that the question is about`() async throws {
    for path in ["new/x", "tmp/y"] { try spool.write(path, "http://h/x\n") }
    let tmux = try await Tmux(columns: 80, rows: 24)
    try await watch(tmux)
    try await tmux.press("j", "c")
    _ = try await waitForText(tmux, "cancel x and its data? y/n")
    try #require(unlink(spool.path("new/x")) == 0)
    try spool.move("tmp/y", "new/x")
    try await tmux.press("y")
    _ = try await waitForText(tmux, "cancel x: it is gone or has changed; nothing is done")
    #expect(spool.places(of: "x") == ["new/x"])
    // A worker takes it while the question is asked.
    try await tmux.press("j", "c")
    _ = try await waitForText(tmux, "cancel x and its data? y/n")
    try spool.move("new/x", "cur/x:h.1.0000002a")
    try await tmux.press("y")
    _ = try await waitForText(tmux, "cur/x:h.1.0000002a removed")
  }

  /// As in a paste.
  @Test func `keys that come with the one that asks are no answer`() async throws {
    try fill(2)
    let tmux = try await Tmux(columns: 80, rows: 24)
    try await watch(tmux)
    try await tmux.press("j")
    _ = try await waitForText(tmux, "> \(name(1))")
    try await tmux.press("cyy")
    _ = try await waitForText(tmux, "y/n")
    #expect(spool.names("new").count == 2)
  }

  @Test(arguments: [5, 500])
  func `whatever size the window gets, the picture is whole`(count: Int) async throws {
    try fill(count)
    let tmux = try await Tmux(columns: 80, rows: 24)
    try await watch(tmux)
    try await tmux.press("G")
    for (columns, rows) in [(40, 10), (120, 40), (30, 5), (79, 12), (80, 24), (200, 3), (80, 24)] {
      try await tmux.resize(columns: columns, rows: rows)
      // Each line is one of this picture, and none is there twice.
      let lines = try await tmux.wait(for: "\(columns)x\(rows)") { lines in
        lines.count == rows && lines[0] == "\(count) waiting" && lines.count { $0.contains("q quit") } == 1
          && lines[rows - 1].hasSuffix("q quit") && (rows < 5 || lines.contains { $0.hasPrefix("> \(name(count))") })
      }
      #expect(lines.count { $0.hasPrefix("\(count) waiting") } == 1)
      #expect(Set(lines.filter { $0.contains("job-") }).count == lines.count { $0.contains("job-") }, "\(lines)")
    }
  }

  @Test func `filter, order, help and a job's story`() async throws {
    try fill(500)
    let tmux = try await Tmux(columns: 80, rows: 24)
    try await watch(tmux)
    try await tmux.press("/", "1", "4", "2")
    var lines = try await waitForText(tmux, "new/: 11 of 500 waiting", last: "/142_")
    #expect(lines.last == "/142_" && lines[0] == "500 waiting")
    try await tmux.press("Enter", "j")
    _ = try await waitForText(tmux, "> \(name(142))")
    try await tmux.press("Enter")
    lines = try await waitForText(tmux, "\(name(142)): waits for a worker", last: "q back")
    #expect(lines.contains("  url     http://h/142") && lines.last == "q back")
    try await tmux.press("q")
    _ = try await waitForText(tmux, "Esc all")
    try await tmux.press("Escape")
    // The selected job is still on the screen.
    lines = try await tmux.wait(for: "all jobs") { !$0.joined().contains("Esc all") }
    #expect(lines.contains { $0.hasPrefix("> \(name(142))") } && lines.contains { $0.hasSuffix(name(141)) }, "\(lines)")
    try await tmux.press("s")
    _ = try await waitForText(tmux, "sorted by name")
    try await tmux.press("?")
    lines = try await waitForText(tmux, "Ctrl-Z", last: "q back")
    #expect(lines[0] == "Keys" && lines.last == "q back")
    try await tmux.press("Escape")
    _ = try await waitForText(tmux, "by name")
    try await tmux.press("q")
    try await tmux.waitForPrompt()
  }

  @Test func `it can be suspended, and goes on`() async throws {
    try fill(5)
    let tmux = try await Tmux(columns: 80, rows: 24)
    try await watch(tmux)
    for _ in 1...2 {
      try await tmux.press("C-z")
      let lines = try await tmux.wait(for: "the prompt") {
        $0.contains { $0.contains("Stopped") } && $0.contains("ready$")
      }
      #expect(!lines.contains { $0.contains("q quit") })
      #expect(try await tmux.value("#{alternate_on} #{cursor_flag}") == "0 1")
      try await tmux.type("clear; fg")
      _ = try await waitForText(tmux, "q quit")
      #expect(try await tmux.value("#{alternate_on} #{cursor_flag}") == "1 0")
    }
    try await tmux.press("j")
    _ = try await waitForText(tmux, "> \(name(1))")
    try await tmux.press("q")
    try await tmux.waitForPrompt()
    try await tmux.type("clear; stty")
    let lines = try await tmux.wait(for: "settings") { $0.contains { $0.hasPrefix("speed") } && $0.contains("ready$") }
    #expect(!lines.joined().contains("-echo") && !lines.joined().contains("-icanon"), "\(lines)")
  }

  @Test(arguments: ["C-c", "TERM", "QUIT", "HUP"])
  func `a signal leaves the terminal as it was`(signal: String) async throws {
    try fill(5)
    let tmux = try await Tmux(columns: 80, rows: 24)
    try await watch(tmux)
    if signal == "C-c" {
      try await tmux.press("C-c")
    } else {
      let shell = try await tmux.value("#{pane_pid}")
      try await runTool(["/usr/bin/pkill", "-\(signal)", "-P", shell, "spoolrun"])
    }
    try await tmux.waitForPrompt()
    #expect(try await tmux.value("#{alternate_on} #{cursor_flag}") == "0 1")
    try await tmux.type("clear; stty")
    let lines = try await tmux.wait(for: "settings") { $0.contains { $0.hasPrefix("speed") } && $0.contains("ready$") }
    #expect(!lines.joined().contains("-echo") && !lines.joined().contains("-icanon"), "\(lines)")
  }

  @Test func `names do not steer the terminal`() async throws {
    try spool.write("new/\u{1B}[2Jevil\u{1B}]0;owned\u{7}", "http://h/x\n")
    let tmux = try await Tmux(columns: 80, rows: 24)
    try await watch(tmux)
    try await tmux.press("j", "c")
    let lines = try await waitForText(tmux, "y/n")
    #expect(lines[0] == "1 waiting" && lines.contains { $0.hasPrefix("> \\x1b[2Jevil\\x1b]0;owned\\x07") }, "\(lines)")
    #expect(try await tmux.value("#{pane_title}") != "owned")
    try await tmux.press("y")
    _ = try await waitForText(tmux, "removed")
    #expect(spool.names("new") == [])
  }

  @Test func `without --watch the numbers are at the end as well, where the table is too high`() async throws {
    try fill(500)
    let tmux = try await Tmux(columns: 80, rows: 12)
    try await tmux.type("clear; \(productPath("spoolrun")) status \(spool.root)")
    // The prompt alone may be that of before.
    var lines = try await tmux.wait(for: "the table") { $0.contains("500 waiting") && $0.last == "ready$" }
    #expect(Array(lines.suffix(3)) == ["", "500 waiting", "ready$"] && !lines.dropLast(3).contains("500 waiting"))
    try await tmux.resize(columns: 80, rows: 40)
    // The screen has the old table still, and more of it since it has more rows.
    try await tmux.type("clear; echo again; \(productPath("spoolrun")) status \(spool.root)")
    lines = try await tmux.wait(for: "the table") { $0.first == "again" && $0.contains("ready$") }
    #expect(lines.count { $0 == "500 waiting" } == 1, "\(lines)")
  }

  @Test func `an error is said, and the next picture still comes`() async throws {
    try fill(2)
    let tmux = try await Tmux(columns: 120, rows: 24)
    try await watch(tmux)
    try spool.write("hold/\(name(1))", "http://h/other\n")
    _ = try await waitForText(tmux, "hold/: 1 paused")
    try await tmux.press("j", "l")
    _ = try await waitForText(tmux, "hold/\(name(1)) cannot be moved: new/\(name(1)) has the same name")
    try spool.write("new/later", "http://h/x\n")
    try await tmux.wait(for: "the new job") { $0[0] == "1 paused, 3 waiting" }
  }

  @Test(.enabled("needs root, to be several users") { try await Need.users.isMet() })
  func `a user who may only look is told so`() async throws {
    try fill(2)
    try spool.write("done/receipt", "http://h/x\ndone: 2026-01-01T00:00:00Z attempts=1\n")
    _ = chmod(spool.path("done/receipt"), 0o600)
    for path in ["", "new", "urgent", "cur", "partial", "done", "failed", "hold", "tmp", "files"] {
      _ = chmod(spool.path(path), 0o755)
    }
    chmod(String(spool.root.dropLast("/spool".count)), 0o755)
    let prefix = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    let tmux = try await Tmux(columns: 160, rows: 24, prefix: prefix)
    try await watch(tmux)
    for (key, command) in [("h", "hold"), ("p", "prioritise")] {
      try await tmux.press("j", key)
      _ = try await waitForText(
        tmux, "\(command) \(name(key == "h" ? 1 : 2)): this user may look at the spool, not change it")
    }
    #expect(spool.names("new").count == 2)
    // Numbers without receipts would be wrong. The program is opened as root: the user may not reach it.
    let script = #"exec 3<"$0"; exec "$1" "$2" "$3" "$4" /proc/self/fd/3 $5 "$6""#
    for command in ["status --metrics", "report -o -"] {
      let result = try await run(["/bin/sh", "-c", script, productPath("spoolrun")] + prefix + [command, spool.root])
      #expect(result.status == .exited(74) && result.output == "", "\(result)")
      #expect(result.errors.contains("done/receipt"), "\(result)")
    }
  }

  @Test(.enabled("needs root, to be several users") { try await Need.users.isMet() })
  func `root does in it what the owner does`() async throws {
    try fill(2)
    try await runTool([
      "/bin/sh", "-c", #"rmdir "$0/urgent"; chmod 755 "${0%/*}"; chown -R 61001:61001 "$0""#, spool.root,
    ])
    let tmux = try await Tmux(columns: 80, rows: 24)
    try await watch(tmux)
    try await tmux.press("j", "p")
    _ = try await waitForText(tmux, "-> urgent/")
    #expect(fileStatus(spool.path("urgent"))?.st_uid == 61001)
  }
}
