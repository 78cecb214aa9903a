import Spool
import SpoolWorker
import TestSupport
import Testing

/// spoolrun-log(7) and the events that the sources report.
@Suite struct LogTests {
  struct Reported: Hashable, Sendable {
    let event: String
    /// nil where the source computes it.
    let level: String?
  }

  @Test func `spoolrun-log(7) lists every event, with its level`() throws {
    let reported = try Self.reported()
    #expect(reported.count > 15)
    let items = try Manual("man/spoolrun-log.7").items("EVENTS")
    #expect(items.map { $0.head[1] }.sorted() == Set(reported.map(\.event)).sorted())
    for item in items {
      let levels = item.head.drop { $0 != "Pq" }.dropFirst().filter { $0 != "," }
      #expect(!levels.isEmpty && levels.allSatisfy { ["debug", "info", "warning", "error"].contains($0) })
      for event in reported where event.event == item.head[1] {
        #expect(event.level.map { levels == [$0] } ?? true, "\(event.event) is \(event.level ?? "")")
      }
    }
  }

  @Test func `spoolrun-log(7) says which fields are numbers`() throws {
    let manual = try Manual("man/spoolrun-log.7")
    #expect(manual.names("NUMBERS", "Cm").sorted() == Event.numbers.sorted())
  }

  @Test func `spool(5) names the variables of hooks`() throws {
    let sources = filesBelow("\(SourceTree.root)/Sources/SpoolWorker").filter { $0.hasSuffix(".swift") }
    let text = try sources.flatMap { try SourceTree.lines("Sources/SpoolWorker/\($0)") }.joined(separator: "\n")
    var found = Set(text.matches(of: /"SPOOLRUN_([A-Z0-9]+)"/).map { String($0.1) })
    let listed = try SourceTree.lines("Sources/SpoolWorker/Job/JobHooks.swift").joined(separator: "\n")
    found.formUnion(listed.matches(of: /\("([A-Z0-9]+)",/).map { String($0.1) })
    let manual = try Manual("man/spool.5").section("HOOKS").joined(separator: "\n")
    #expect(found.count > 20)
    for name in found { #expect(manual.contains("SPOOLRUN_\(name)"), "\(name)") }
  }

  /// Otherwise nobody has decided whether it is a number.
  @Test func `every field of an event has a type`() throws {
    var found: Set<String> = []
    let files = filesBelow("\(SourceTree.root)/Sources/SpoolWorker").map { "SpoolWorker/\($0)" }
    for file in files + ["Spool/Journal/FailureRecord.swift"] where file.hasSuffix(".swift") {
      let text = try SourceTree.lines("Sources/\(file)").joined(separator: "\n")
        // The report of a worker in `workers/` is no event.
        .replacing(/report\.options = .*(\n *\.with\(.*)*/, with: "")
      for match in text.matches(of: /\.with\(\s*"([a-z0-9-]+)",/) { found.insert(String(match.1)) }
    }
    // `with(_:)` of digests writes these keys, and of their states this one.
    found.formUnion(DigestAlgorithm.allCases.map(\.rawValue) + ["states"])
    #expect(found.sorted() == Event.numbers.union(Self.texts).sorted())
    #expect(found.isDisjoint(with: ["time", "event", "level", "job"]), "members of each event")
  }

  /// Digests are texts, even those that have decimal digits only; so are values that are numbers or texts, such as what
  /// was expected.
  private static let texts: Set = [
    "blake2b", "burned", "by", "class", "code", "crc32", "crc32c", "crc64nvme", "data", "directory", "doubt",
    "expected",
    "file", "fitness", "found", "gate", "hook", "kind", "limits", "lost", "md5", "next", "other", "output",
    "output-root", "proxy", "reason", "retry", "server", "sha1", "sha256", "sha3-256", "sha512", "signed", "states",
    "text", "tried", "type", "unchanged", "url", "way",
  ]

  /// `Event("name", .level, …)`, and `log("name", …)` and `return ("name", Self.facts(…` for the short forms of it.
  private static func reported() throws -> Set<Reported> {
    var found = Set(ResponseVerdict.Change.allCases.map { Reported(event: $0.rawValue, level: nil) })
    for file in filesBelow("\(SourceTree.root)/Sources/SpoolWorker") where file.hasSuffix(".swift") {
      let text = try SourceTree.lines("Sources/SpoolWorker/\(file)").joined(separator: "\n")
      let event =
        /(?:Event\(|[ .(]log\(|return \((?="[a-z-]+", Self\.f))\s*"([a-z0-9-]+)",\s*(?:\.(debug|info|warning|error)\b)?/
      for match in text.matches(of: event) {
        found.insert(Reported(event: String(match.1), level: match.2.map { String($0) }))
      }
    }
    return found
  }
}
