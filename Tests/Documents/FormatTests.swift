import Spool
import Testing

@Suite struct FormatTests {
  private let manual: Manual

  init() throws { manual = try Manual("man/spool.5") }

  @Test func `spool(5) has the request keys of the program`() {
    #expect(manual.names("JOB FORMAT", "Cm").sorted() == JobKey.all.map(\.name).sorted())
  }

  @Test func `spool(5) names the keys that have no place in defaults`() throws {
    let text = manual.section("JOB FORMAT").joined(separator: " ")
    let list = try #require(text.firstMatch(of: /has the same format, without (.*?)\. A key in a job replaces/)?.1)
    let named = list.split(separator: " ").filter { ![".Cm", ",", "and", "."].contains($0) }
    #expect(named.sorted() == JobKey.all.filter { $0.scope == .job }.map { $0.name[...] }.sorted())
  }

  @Test func `spool(5) lists the keys that defaults alone may have`() {
    let lists = manual.section("JOB FORMAT").split { $0.hasPrefix(".Bl -tag") }
    let named = (lists.last ?? []).filter { $0.hasPrefix(".It Cm ") }.map { $0.split(separator: " ")[2] }
    #expect(named.sorted() == JobKey.all.filter { $0.scope == .defaults }.map { $0.name[...] }.sorted())
  }

  @Test func `spool(5) has the keys and formats of subscriptions`() {
    let named = manual.names("SUBSCRIPTIONS", "Cm")
    #expect(named.sorted() == JobKey.ofOrders.map(\.name).sorted())
    #expect(manual.names("SUBSCRIPTIONS", "Li").sorted() == EntryFormat.allCases.map(\.rawValue).sorted())
  }

  @Test func `spool(5) names the header fields that a job may not set`() throws {
    let item = try #require(manual.items("JOB FORMAT").first { $0.head.starts(with: ["Cm", "header"]) })
    // The paragraph of `.Cm Range ,` and so on, behind `A job cannot set`.
    let paragraph = item.body.split(separator: ".Pp").last ?? []
    let named = paragraph.filter { $0.hasPrefix(".Cm ") }.map { $0.split(separator: " ")[1].lowercased() }
    #expect(named.sorted() == HeaderLine.reserved.sorted())
  }

  @Test func `spool(5) has the journal keys of the program`() {
    #expect(manual.names("JOURNAL", "Cm").sorted() == JournalKey.allCases.map(\.rawValue).sorted())
  }

  @Test func `spool(5) has the directories of the program`() {
    #expect(manual.names("DIRECTORIES", "Pa").sorted() == Directory.allCases.map(\.rawValue).sorted())
  }

  @Test func `spool(5) has the failure codes of the program, each with its class`() {
    // Two lists, the temporary ones first; http-NNN is in both.
    var lists: [[String]] = []
    for line in manual.section("FAILURE CODES") {
      if line.hasPrefix(".Bl ") { lists.append([]) }
      if line.hasPrefix(".It Cm ") { lists[lists.count - 1].append(String(line.dropFirst(7))) }
    }
    let anyHTTP = FailureCode.http.rawValue
    let temporary = FailureCode.allCases.filter { $0 != .http && $0.failureClass == .temporary }.flatMap(\.labels)
    let permanent = FailureCode.allCases.filter { $0 != .http && $0.failureClass == .permanent }.flatMap(\.labels)
    #expect(lists.map { $0.sorted() } == [(temporary + [anyHTTP]).sorted(), (permanent + [anyHTTP]).sorted()])
  }

  @Test func `spool(5) says what each failure code means, as explain does`() throws {
    let items = manual.items("FAILURE CODES")
    for code in FailureCode.allCases where code != .http {
      for label in code.labels {
        // Codes with the same text are in a row.
        let item = try #require(
          items.drop { $0.head != ["Cm", label] }.first { !$0.body.isEmpty }, "\(label) is not in the manual")
        let start = code.meaning.dropLast()
        #expect(
          item.firstSentence.replacing(" :", with: ":").replacing(" -protocols", with: " --protocols").hasPrefix(start),
          "\(label)")
      }
    }
  }

  @Test(arguments: JournalSample.all)
  func `spool(5) has the fields of each journal line`(sample: JournalSample) throws {
    let item = try #require(manual.items("JOURNAL").first { $0.head.starts(with: ["Cm", sample.key.rawValue]) })
    // `Cm class= Ns Ar CLASS`, `Cm burned=no`.
    let documented = item.head.filter { $0.contains("=") }.map { String($0.prefix { $0 != "=" }) }
    #expect(Set(documented) == sample.fields)
  }

  @Test func `the jobs shown in spool(5) are valid`() throws {
    let examples = displays(in: "EXAMPLES")
    #expect(examples.count == 3)
    for job in examples.prefix(2) {
      #expect(parse(job).defect == nil)
    }
    #expect(parse(examples[1]).request.urls.count == 2)
  }

  @Test func `the journal shown in spool(5) is what the program writes`() throws {
    let page = displays(in: "EXAMPLES")[2]
    // Lines are broken with a backslash there, and continued with spaces.
    let whole = page.replacing(/\ \\\n\ +/, with: " ")
    let job = parse("https://mirror.example/data.tar\n" + whole)
    #expect(job.defect == nil)
    #expect(job.journal.attempts.failures == 1)
    #expect(job.journal.publication.verified?.size == 1_048_576)
    #expect(job.journal.publication.receipt?.output == "data.tar")
    for line in whole.split(separator: "\n") {
      let key = line.prefix { $0 != ":" }
      let fields = try #require(Fields(parsing: line.dropFirst(key.count + 2)))
      #expect("\(key): \(fields.text)" == line, "not as the program would spell it")
    }
  }

  private func parse(_ job: String) -> JobText { Array(job.utf8).withUnsafeBytes { JobText($0) } }

  /// The literal displays of a section, as they are shown.
  private func displays(in title: String) -> [String] {
    var displays: [String] = []
    var isOpen = false
    for line in manual.section(title) {
      if line.hasPrefix(".Bd -literal") {
        isOpen = true
        displays.append("")
      } else if line == ".Ed" {
        isOpen = false
      } else if isOpen {
        displays[displays.count - 1] += line.replacing("\\e", with: "\\") + "\n"
      }
    }
    return displays
  }
}
