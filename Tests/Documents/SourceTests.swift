import Spool
import TestSupport
import Testing

/// What the sources and their companions say of each other.
@Suite struct SourceTests {
  /// Without a key here the fuzzer does not find it. A job cannot have those of `defaults` alone.
  @Test(
    arguments: [
      ("Rig/dictionary", JobKey.all + JobKey.ofOrders), ("Corpus/job/every-key", JobKey.ofJobs + JobKey.ofOrders),
      ("Corpus/job/every-default", JobKey.all.filter { $0.scope == .defaults }),
    ])
  func `the fuzzer knows each job key`(file: String, keys: [JobKey]) throws {
    let path = "Tests/Fuzz/\(file)"
    let text = try SourceTree.lines(path).joined(separator: "\n")
    let missing = keys.map(\.name).filter { !text.contains("\($0):") }
    #expect(missing == [], "\(path) lacks these keys")
  }

  @Test func `links of documents lead to files, here and in a package`() async throws {
    func dead(_ files: [String], in root: String) throws -> [String] {
      try files.flatMap { file in
        let text = String(decoding: try readFile("\(root)/\(file)"), as: UTF8.self)
        let folder = "\(root)/" + file.split(separator: "/").dropLast().map { "\($0)/" }.joined()
        return text.matches(of: /\]\(([^)#:]+)(#[^)]*)?\)/).map { folder + $0.1 }.filter { fileStatus($0) == nil }
      }
    }
    let (root, place) = (SourceTree.root, try TemporaryDirectory())
    let documents = ["README.md", "NEWS.md", "docs/GUIDE.md", "docs/SECURITY.md"]
    #expect(try dead(documents + ["contrib/README.md", "CONTRIBUTING.md", "docs/INTERNALS.md"], in: root) == [])
    try await runTool(["cp"] + documents + [place.path], directory: root)
    try await runTool(["cp", "-r", "contrib", "\(place.path)/examples"], directory: root)
    try await runTool(["make", "--silent", "doc-links", "DOCS=\(place.path)"], directory: root)
    let installed = ["README.md", "NEWS.md", "GUIDE.md", "SECURITY.md", "examples/README.md"]
    #expect(try dead(installed, in: place.path) == [])
  }

  /// A comment that names ``symbol`` means one that is declared somewhere in the sources.
  @Test func `comments name symbols that exist`() throws {
    let sources = SourceTree.files(below: "Sources", suffix: ".swift")
    var words: Set<Substring> = []
    var references: [(file: String, line: Int, name: Substring)] = []
    for file in sources {
      for (index, line) in try SourceTree.lines(file).enumerated() {
        let comment = line.firstRange(of: "//")?.lowerBound ?? line.endIndex
        words.formUnion(line[..<comment].split { !$0.isLetter && !$0.isNumber && $0 != "_" })
        for match in line[comment...].matches(of: /``([^`]+)``/) {
          references.append((file, index + 1, match.1))
        }
      }
    }
    #expect(!references.isEmpty)
    for reference in references {
      // `Type/member(label:)`: the type's and the member's own names.
      let names = reference.name.prefix { $0 != "(" }.split(separator: "/")
      let unknown = names.filter { !words.contains($0) }
      #expect(unknown == [], "\(reference.file):\(reference.line): ``\(reference.name)``")
    }
  }
}
