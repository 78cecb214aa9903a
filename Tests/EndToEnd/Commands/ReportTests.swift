import Foundation
import Glibc
import TestSupport
import Testing

@Suite struct ReportTests {
  private let scene: Scene

  init() throws { scene = try Scene.echoing() }

  /// A job that is done, one that is given up, one that waits, and names that no page should believe.
  private func fill() async throws {
    let names = ["plain", "<img src=x onerror=document.title='bad'>", "a\"'&\u{1}"]
    for name in names {
      let url = scene.server.url(name == "plain" ? "/x" : "/gone")
      try scene.spool.drop(name, "\(url)\noutput: \(name.utf8.count)\n")
    }
    try scene.spool.drop("gone", scene.server.url("/gone") + "\n")
    try await scene.spool.once(exits: 1)
    try scene.spool.drop("waiting", scene.server.url("/x") + "\n")
  }

  @Test func `it writes a page, by a rename`() async throws {
    try await fill()
    let page = "\(scene.tools)/page.html"
    try writeFile(page, "old")
    let inode = fileStatus(page)?.st_ino
    let result = try await scene.spoolrun("report", "-o", page)
    #expect(result.status == .exited(0) && result.output.isEmpty && result.errors.isEmpty, "\(result)")
    #expect(fileStatus(page)?.st_ino != inode)
    #expect(names(in: scene.tools).sorted() == ["page.html", "spoolrun"])
    let text = try readText(page)
    for shown in ["plain", "gone", "waiting", "http-404", "127.0.0.1", "&lt;img", "The file is not there"] {
      #expect(text.contains(shown), "\(shown)")
    }
    #expect(!text.contains("<img") && !text.contains("<script"))
    let printed = try await scene.spoolrun("report", "--output", "-", "--since", "1h")
    #expect(printed.status == .exited(0) && printed.output.hasPrefix("<!DOCTYPE html>\n"))
    #expect(printed.output.hasSuffix("</html>\n"))
  }

  @Test func `a subscription is no job`() async throws {
    for directory in ["hold", "failed"] {
      try scene.spool.write("\(directory)/nightly", "url: http://h/f\nevery: 1h\n")
    }
    let printed = try await scene.spoolrun("report", "--output", "-")
    #expect(printed.status == .exited(0) && !printed.output.contains("nightly"), "\(printed)")
    #expect(!printed.output.contains("Paused now") && !printed.output.contains("Failed now"), "\(printed)")
  }

  @Test func `the usual name replaces earlier pages only`() async throws {
    let directory = try TemporaryDirectory()
    func report() async throws -> CommandResult {
      try await spoolrun("report", "--spool", scene.spool.root, directory: directory.path)
    }
    let page = "\(directory.path)/report.html"
    for _ in 0..<2 { try await report().exits(0) }
    try writeFile(page, "mine")
    try await report().exits(73, saying: "no report")
    #expect(try readFile(page) == Array("mine".utf8))
  }

  @Test func `a beginning that is none is refused, and a page that cannot be written is said`() async throws {
    for since in ["7", "yesterday", "2026-02-31", "", "7w"] {
      let result = try await scene.spoolrun("report", "--since", since)
      #expect(result.status == .exited(64) && result.errors.contains("--since"), "\(since): \(result)")
    }
    try await scene.spoolrun("report", "-o", "\(scene.tools)/none/page.html").exits(73, saying: "page.html")
  }

  @Test(
    .timeLimit(.minutes(10)), .enabled("needs chromium") { try await Need.chromium.isMet() },
    arguments: [360, 900, 1600])
  func `a browser shows it at any width, and runs nothing of it`(width: Int) async throws {
    try await fill()
    let page = "\(scene.tools)/page.html"
    try await scene.spoolrun("report", "-o", page).exits(0)
    try await show(
      page,
      with: """
        <script>addEventListener("load", () => {
          const wide = document.documentElement.scrollWidth - innerWidth, all = s => document.querySelectorAll(s).length
          const figures = [wide <= 0, all("img"), all("script"), all("section"), all("h1"), all("main"), all("svg") > 8,
            document.title.startsWith("spoolrun: "), [...document.querySelectorAll("table")].every(t => t.caption)]
          document.body.textContent = "figures " + JSON.stringify(figures)
        })</script>
        """, "--window-size=\(width),1000", says: "figures [true,0,1,9,1,1,true,true,true]")
  }

  @Test(
    .timeLimit(.minutes(10)),
    .enabled("needs chromium and axe-core") { try await Need.areMet(.chromium, .axe) },
    arguments: [(isDark: false, option: "--disable-gpu"), (true, "--blink-settings=preferredColorScheme=0")])
  func `axe finds nothing in it that some people cannot read`(isDark: Bool, option: String) async throws {
    try await fill()
    let page = "\(scene.tools)/page.html"
    try await scene.spoolrun("report", "-o", page).exits(0)
    try await run(["/bin/sh", "-euc", Need.axe.trial], directory: scene.tools).exits(0)
    try await show(
      page,
      with: """
        <script src="axe.min.js"></script>
        <script>addEventListener("load", async () => {
          const found = await axe.run(), isDark = matchMedia("(prefers-color-scheme: dark)").matches
          const wrong = found.violations.map(rule => rule.id + ": " + rule.nodes.map(node => node.target))
          document.body.textContent = "axe " + JSON.stringify([isDark, found.passes.length > 30, wrong])
        })</script>
        """, "--virtual-time-budget=30000", option, says: "axe [\(isDark),true,[]]")
  }

  /// Shows the page with another script, and without its policy, so that a script of a stranger would run as well.
  private func show(_ page: String, with script: String, _ options: String..., says expected: String) async throws {
    let policy = #"<meta http-equiv="Content-Security-Policy" content="default-src 'none';style-src 'unsafe-inline'">"#
    let text = try readText(page)
    #expect(text.contains(policy))
    let shown = text.replacing(policy, with: "").replacing("</body>", with: script + "</body>")
    try writeFile(page, shown)
    let chromium = [
      "/usr/bin/env", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
      "--user-data-dir=\(scene.tools)/profile", "--dump-dom",
    ]
    let result = try await run(chromium + options + ["file://\(page)"])
    #expect(result.output.contains(expected), "\(result)")
  }
}
