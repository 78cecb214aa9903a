import Glibc
import TestSupport
import Testing

/// `clean --archive`, and the commands that know archived receipts.
@Suite struct ArchiveTests {
  private let scene: Scene

  init() throws { scene = try Scene.echoing() }

  /// Done jobs `a` and `b c`, which have been done for three days, and `young`.
  private func fill() async throws {
    for name in ["a", "b c", "young"] {
      try scene.spool.drop(
        name, "url: \(scene.server.url("/\(name.prefix(1))?token=s3cret"))\noutput: sets/\(name)\ndigests: sha256\n")
    }
    try await scene.spoolrun("run", "--once").exits(0)
    for name in ["a", "b c"] { try age(name) }
  }

  private func age(_ name: String) throws {
    try setModificationTime(scene.spool.path("done/\(name)"), secondsFromNow: -3 * 86_400)
  }

  private func archive() async throws {
    let result = try await scene.spoolrun("clean", "--archive", "2d")
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
  }

  /// The path of the one month's directory.
  private var month: String {
    get throws { "done/archive/\(try #require(names(in: scene.spool.path("done/archive")).first))" }
  }

  @Test func `old receipts move into the directory of their month`() async throws {
    try await fill()
    let before = filesBelow(scene.spool.root)
    let dry = try await scene.spoolrun("clean", "--dry-run", "--archive", "2d")
    #expect(filesBelow(scene.spool.root) == before)
    let receipt = try readFile(scene.spool.path("done/b c"))
    let real = try await scene.spoolrun("clean", "--archive", "2d")
    #expect(dry.output == real.output.replacing("archived", with: "would archive"))
    #expect(real.output.wholeMatch(of: #/archived 2 receipts in done/archive/\d{4}-\d\d\n/#) != nil, "\(real)")
    #expect(real.status == .exited(0) && real.errors == "")
    #expect(Set(scene.spool.names("done")) == ["archive", "young"])
    #expect(Set(names(in: scene.spool.path(try month))) == ["a", "b c"])
    #expect(try readFile(scene.spool.path("\(try month)/b c")) == receipt)
    #expect(try await scene.spoolrun("clean", "--archive", "2d").output == "", "nothing is to do")
  }

  @Test func `ages are given as for receipts that are removed, which comes before`() async throws {
    try await fill()
    try setModificationTime(scene.spool.path("done/a"), secondsFromNow: -9 * 86_400)
    for age in ["", "30", "0d", "1w"] {
      let result = try await scene.spoolrun("clean", "--archive=\(age)")
      #expect(result.status == .exited(64), "\(age): \(result)")
    }
    let result = try await scene.spoolrun("clean", "--archive", "1d", "--keep-done", "5d")
    #expect(result.output.contains("archived 1 receipt in") && result.output.contains("removed done/a"), "\(result)")
  }

  // MARK: who knows them

  @Test func `verify reads the payloads of archived receipts`() async throws {
    try await fill()
    let before = try await scene.spoolrun("verify", "-v")
    let sums = try await scene.spoolrun("verify", "--sums", "sha256")
    try await archive()
    func lines(_ text: String) -> Set<Substring> { Set(text.split(separator: "\n")) }
    let after = try await scene.spoolrun("verify", "-v")
    #expect(after.status == .exited(0) && lines(after.output) == lines(before.output) && lines(after.output).count == 3)
    #expect(try await lines(scene.spoolrun("verify", "--sums", "sha256").output) == lines(sums.output))
    try scene.spool.write("files/sets/a", "x")
    let changed = try await scene.spoolrun("verify")
    #expect(changed.status == .exited(1) && changed.output.hasPrefix("a: changed: sets/a: "), "\(changed)")
    let named = try await scene.spoolrun("verify", "-v", "b c", "done/young")
    #expect(named.status == .exited(0) && lines(named.output).count == 2, "\(named)")
    let missing = try await scene.spoolrun("verify", "nope")
    #expect(missing.status == .exited(1) && missing.output == "nope: no such receipt in done\n")
  }

  @Test func `status tells of archived jobs, and report shows them`() async throws {
    try await fill()
    let story = try await scene.spoolrun("status", scene.spool.root, "a").output
    try await archive()
    let archived = try await scene.spoolrun("status", scene.spool.root, "a")
    let place = "\(try month)/a"
    #expect(archived.output == story.replacing("done/a", with: place) && archived.status == .exited(0))
    #expect(try await scene.spoolrun("status", scene.spool.root, "done/b c").output.hasPrefix("b c: done\n"))
    try await scene.spoolrun("status", scene.spool.root, "archive").exits(1)
    let table = try await scene.spoolrun("status")
    #expect(table.output.contains("1 done") && !table.output.contains("2 done"), "archive is no receipt: \(table)")
    let page = try await scene.spoolrun("report", "-o", "-")
    #expect(page.output.contains("sets/a") || page.output.contains(">a<"), "\(page.errors)")
    let recent = try await scene.spoolrun("report", "-o", "-", "--since", "1d")
    #expect(!recent.output.contains(">b c<"), "its receipt is older")
  }

  @Test func `add drops nothing that is archived`() async throws {
    try await fill()
    try scene.spool.drop("odd", "url: \(scene.server.url("/e"))\noutput: sets/even\n")
    try await scene.spoolrun("run", "--once")
    try age("odd")
    try await archive()
    func add(_ more: String...) async throws -> CommandResult {
      let url = scene.server.url("/a?token=s3cret")
      return try await scene.spoolrun(["add", "--new", url] + more)
    }
    let same = try await add("-o", "sets/a", "--name", "other")
    let place = "\(try month)/a"
    #expect(same.output == "a\n" && same.errors.contains("already there, as \(place)"), "\(same)")
    #expect(try await add("-o", "sets/z", "--name", "a").errors.contains("with another URL or output"))
    #expect(try await add("-o", "sets/z", "--name", "z").output == "z\n", "it is new")
    func addList(_ url: String, _ output: String, _ options: String...) async throws -> String {
      try writeFile("\(scene.tools)/list", "url: \(scene.server.url(url))\noutput: \(output)\n")
      return try await scene.spoolrun(["add", "--from", "\(scene.tools)/list"] + options).output
    }
    #expect(try await addList("/a?token=s3cret", "sets/a", "--new") == "0 added, 1 already there\n")
    #expect(try await addList("/a?token=s3cret", "sets/a") == "0 added, 1 already there\n")
    // Under another name, which only --new sees: a list has names from its outputs.
    #expect(try await addList("/e", "sets/even", "--new") == "0 added, 1 already there\n")
    #expect(try await addList("/e", "sets/even") == "1 added\n")
    // Another job of the name.
    let taken = "0 added, 1 skipped because another job has the name\n"
    #expect(try await addList("/other", "other/a", "--new") == taken)
    #expect(try await addList("/other", "other/a") == "1 added\n")
  }

  @Test func `counters are the same`() async throws {
    try await fill()
    func counters(_ options: String...) async throws -> [Substring] {
      let text = try await scene.spoolrun(["status"] + options + [scene.spool.root]).output
      let file = options.first == "--textfile" ? try readText(options[1]) : text
      return file.split(separator: "\n").filter { $0.hasPrefix("spoolrun_") && $0.contains("_total") }
    }
    let (old, new) = (scene.spool.path("tmp/old.prom"), scene.spool.path("tmp/new.prom"))
    let before = try await counters("--metrics")
    #expect(before.contains { $0.hasPrefix("spoolrun_done_total") && $0.hasSuffix(" 3") })
    #expect(try await counters("--textfile", old) == before)
    try await archive()
    #expect(try await counters("--metrics") == before)
    #expect(try await counters("--textfile", old) == before, "a file that has seen them in done")
    #expect(try await counters("--textfile", new) == before, "one that has not")
    try age("young")
    try await archive()
    for _ in 0..<2 {
      #expect(try await counters("--textfile", old) == before)
      #expect(try await counters("--textfile", new) == before)
    }
  }

  @Test func `a receipt can be brought back by hand, and two of one name are kept`() async throws {
    try await fill()
    try await archive()
    try await scene.shell("mv \(try month)/a done/").exits(0)
    #expect(try await scene.spoolrun("status", scene.spool.root, "a").output.contains("done/a\n"))
    try await scene.shell("cp -p done/a \(try month)/ && echo '# mine' >>\(try month)/a").exits(0)
    let again = try await scene.spoolrun("clean", "--archive", "1d")
    #expect(again.output == "archived 1 receipt in \(try month)~2\n", "\(again)")
    let both = try await scene.spoolrun("status", scene.spool.root, "a")
    #expect(try both.output.contains("\(month)/a\n") && both.output.contains("\(month)~2/a\n"), "\(both)")
  }

  // MARK: what else is there

  @Test func `several at once`() async throws {
    try await fill()
    for number in 0..<200 {
      try scene.spool.write("done/n\(number)", try readFile(scene.spool.path("done/young")))
      try age("n\(number)")
    }
    let all = try await scene.shell(
      "for i in 1 2 3; do $spoolrun clean --archive 1d >/dev/null & done; wait; ls done; ls done/archive/*/ | wc -l")
    #expect(all.errors == "" && all.output == "archive\nyoung\n202\n", "\(all)")
  }

  /// What version 0.2 left.
  @Test func `a gzipped archive becomes receipts`() async throws {
    try await fill()
    try await archive()
    let receipt = try readFile(scene.spool.path("\(try month)/b c"))
    let file = "\(try month).tsv.gz"
    let pack = """
      { printf '#done\\tname\\toutput\\tsize\\tdigests\\turl\\tmodified\\treceipt\\n'
      for name in a 'b c'; do
      printf '2026-01-01T00:00:00Z\\t%s\\t-\\t-\\t-\\t-\\t2026-01-01T00:00:00Z\\t' "$name"
      sed 's/\\\\/\\\\x5c/g' "\(try month)/$name" | awk '{ printf "%s\\\\n", $0 }'; echo
      done; } | gzip >\(file) && rm -r \(try month)
      """
    try await scene.shell(pack).exits(0)
    let clean = try await scene.spoolrun("clean")
    #expect(clean.output.contains("\(file): an archive of version 0.2: contrib/unarchive"), "\(clean)")
    let result = try await scene.shell("\(SourceTree.contrib("unarchive")) \(file)")
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
    #expect(!scene.exists(file), "it has nothing any more")
    let place = scene.spool.path("\(try month)/b c")
    #expect(try readFile(place) == receipt && fileStatus(place)?.st_mtim.tv_sec == 1_767_225_600)
    try await scene.spoolrun("verify").exits(0)
  }

  @Test func `a job may be called archive`() async throws {
    try scene.spool.drop("archive", "url: \(scene.server.url("/x"))\noutput: x\n")
    try await scene.spoolrun("run", "--once")
    try await fill()
    try await archive()
    #expect(Set(scene.spool.names("done")) == ["archive", "archive~2", "young"])
    try scene.spool.drop("archive", "url: \(scene.server.url("/y"))\noutput: y\n")
    try await scene.spoolrun("run", "--once")
    #expect(Set(scene.spool.names("done")) == ["archive", "archive~2", "archive~3", "young"])
    try await scene.spoolrun("verify").exits(0)
  }
}
