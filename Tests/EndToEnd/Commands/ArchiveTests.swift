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
    let run = try await scene.spoolrun("run", "--once")
    #expect(run.status == .exited(0), "\(run)")
    for name in ["a", "b c"] { try age(name) }
  }

  private func age(_ name: String) throws {
    try setModificationTime(scene.spool.path("done/\(name)"), secondsFromNow: -3 * 86_400)
  }

  private func archive() async throws {
    let result = try await scene.spoolrun("clean", "--archive", "2d")
    #expect(result.status == .exited(0) && result.errors == "", "\(result)")
  }

  /// The path of the one archive.
  private var file: String {
    get throws { "done/archive/\(try #require(names(in: scene.spool.path("done/archive")).first))" }
  }

  @Test func `old receipts move into the archive of their month`() async throws {
    try await fill()
    let before = filesBelow(scene.spool.root)
    let dry = try await scene.spoolrun("clean", "--dry-run", "--archive", "2d")
    #expect(filesBelow(scene.spool.root) == before)
    let real = try await scene.spoolrun("clean", "--archive", "2d")
    #expect(dry.output == real.output.replacing("archived", with: "would archive"))
    #expect(real.output.wholeMatch(of: #/archived 2 receipts in done/archive/\d{4}-\d\d\.tsv\.gz\n/#) != nil, "\(real)")
    #expect(real.status == .exited(0) && real.errors == "")
    #expect(Set(scene.spool.names("done")) == ["archive", "young"])
    #expect(fileStatus(scene.spool.path(try file)).map { $0.st_mode & 0o777 } == 0o600)
    #expect(try await scene.spoolrun("clean", "--archive", "2d").output == "", "nothing is to do")
    let found = try await scene.shell("zgrep -c . done/archive/*.gz; zgrep -h 'sets/b c' done/archive/*.gz | cut -f2-6")
    let lines = found.output.split(separator: "\n")
    #expect(lines.count == 2 && lines[0] == "3", "two receipts and the names of the columns: \(found)")
    let columns = lines[1].split(separator: "\t")
    #expect(columns[0] == "b c" && columns[1] == "sets/b c" && columns[2] == "15", "\(columns)")
    #expect(columns[3].contains("crc32=") && columns[3].contains(" sha256="), "\(columns)")
    #expect(columns[4] == scene.server.url("/b"), "\(columns)")
    try age("young")
    try await archive()
    #expect(try await scene.shell("zcat done/archive/*.gz | wc -l").output == "4\n", "members are one file")
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
    try writeFile(scene.spool.path("files/sets/a"), Array("x".utf8))
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
    #expect(archived.output == story.replacing("done/a", with: try file) && archived.status == .exited(0))
    #expect(try await scene.spoolrun("status", scene.spool.root, "done/b c").output.hasPrefix("b c: done\n"))
    #expect(try await scene.spoolrun("status", scene.spool.root, "archive").status == .exited(1))
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
    let place = try file
    #expect(same.output == "a\n" && same.errors.contains("already there, as \(place)"), "\(same)")
    #expect(try await add("-o", "sets/z", "--name", "a").errors.contains("with another URL or output"))
    #expect(try await add("-o", "sets/z", "--name", "z").output == "z\n", "it is new")
    func addList(_ url: String, _ output: String, _ options: String...) async throws -> String {
      try writeFile("\(scene.tools)/list", Array("url: \(scene.server.url(url))\noutput: \(output)\n".utf8))
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
      let file = options.first == "--textfile" ? String(decoding: try readFile(options[1]), as: UTF8.self) : text
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

  @Test func `a receipt can be brought back by hand, and is archived once`() async throws {
    try await fill()
    let receipt = try readFile(scene.spool.path("done/a"))
    try await archive()
    let restore = #"""
      line=$(zcat done/archive/*.tsv.gz | awk -F '\t' '$2 == "a"')
      printf %b "$(printf %s "$line" | cut -f 8)" >done/a
      touch -d "$(printf %s "$line" | cut -f 7)" done/a
      """#
    #expect(try await scene.shell(restore).status == .exited(0))
    #expect(try readFile(scene.spool.path("done/a")) == receipt)
    #expect(try await scene.spoolrun("status", scene.spool.root, "a").output.contains("done/a\n"))
    let again = try await scene.spoolrun("clean", "--archive", "1d")
    #expect(again.output.hasPrefix("archived 1 receipt in"), "\(again)")
    #expect(try await scene.shell("zcat done/archive/*.gz | wc -l").output == "3\n")
  }

  // MARK: what else is there

  @Test func `one at a time`() async throws {
    try await fill()
    try await archive()
    try age("young")
    let result = try await scene.shell("flock done/archive/.lock $spoolrun clean --archive 1d")
    #expect(result.status == .exited(75) && result.errors.contains("another clean --archive runs"), "\(result)")
    #expect(scene.exists("done/young"))
    // Those that are at it together.
    for number in 0..<200 {
      let name = "n\(number)"
      try writeFile(scene.spool.path("done/\(name)"), try readFile(scene.spool.path("done/young")))
      try age(name)
    }
    let both = try await scene.shell(
      """
      for i in 1 2 3; do $spoolrun clean --archive 1d >/dev/null 2>&1 & done; wait
      $spoolrun clean --archive 1d; zcat done/archive/*.gz | cut -f2 | sort | uniq -d; ls done
      """)
    #expect(both.output.split(separator: "\n").filter { !$0.hasPrefix("archived") } == ["archive"], "\(both)")
    #expect(try await scene.shell("zcat done/archive/*.gz | wc -l").output == "204\n")
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
    #expect(try await scene.spoolrun("verify").status == .exited(0))
  }

  @Test func `a damaged archive is said, with its line, and gets no receipts`() async throws {
    try await fill()
    try await archive()
    let path = scene.spool.path(try file)
    let whole = try readFile(path)
    try age("young")
    let long = try await scene.shell("head -c 100000000 /dev/zero | tr '\\0' x | gzip -1")
    #expect(long.status == .exited(0))
    let damages: [(String, String)] = [
      ("head -c 30 \(path) >x", "line 1: the gzipped data ends too early"),
      ("{ cat \(path); echo not gzip; } >x", "line 4: the gzipped data is damaged"),
      ("{ cat \(path); echo strange | gzip; } >x", "line 4: it is no line of an archive"),
      (": >x", "line 1: the gzipped data ends too early"),
      ("{ cat \(path); head -c 100000000 /dev/zero | gzip -1; } >x", "line 4: it is too long"),
      ("zcat \(path) | sed '3s/done:/do\\\\qne:/' | gzip >x", "line 3: its last column cannot be read"),
    ]
    for (command, words) in damages {
      #expect(try await scene.shell("\(command) && mv x \(path)").status == .exited(0))
      let text = "\(try file) \(words)"
      let clean = try await scene.spoolrun("clean", "--archive", "2d")
      #expect(clean.status == .exited(74) && clean.errors.contains(text) && scene.exists("done/young"), "\(clean)")
      // Of other names the receipts are not read.
      let named = words.contains("column") ? [] : [["status", scene.spool.root, "nope"]]
      for arguments in [["status", "--metrics"], ["report", "-o", "-"]] + named {
        let result = try await scene.spoolrun(arguments)
        #expect(result.status == .exited(74) && result.errors.contains(text), "\(arguments): \(result.errors)")
      }
      let verify = try await scene.spoolrun("verify", "-v")
      #expect(verify.status == .exited(1) && verify.errors.contains(text), "\(verify)")
      #expect(verify.output.contains("young: sound"), "\(verify)")
      let add = try await scene.spoolrun("add", "--new", "http://h/new")
      #expect(add.status == .exited(74) && add.errors.contains(text), "\(add)")
      try writeFile(path, whole)
    }
    #expect(try await scene.spoolrun("verify").status == .exited(0))
  }
}
