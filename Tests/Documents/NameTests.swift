import Glibc
import TestSupport
import Testing

/// What the pages for developers name has to exist.
@Suite struct NameTests {
  private static let pages =
    ["docs/INTERNALS.md", "docs/TESTING.md", "CONTRIBUTING.md"]
    + SourceTree.files(below: "Sources", suffix: "README.md")

  @Test(arguments: pages)
  func `types, members and paths that a page names exist`(page: String) throws {
    let (known, declared) = (try Self.words(), try Declarations(of: ["Sources", "Tests"]).members)
    for line in try SourceTree.lines(page) {
      for match in line.matches(of: /`([^`]+)`/) {
        let quoted = match.1
        if quoted.starts(with: /(Sources|Tests|Benchmarks|scripts|man|contrib|docs)\//) {
          // A command with its arguments, or a path alone.
          let path = quoted.prefix { $0 != " " }
          #expect(access("\(SourceTree.root)/\(path)", F_OK) == 0, "\(page): \(quoted)")
        } else if let name = quoted.wholeMatch(of: /([A-Z]\w*[a-z]\w*)(?:\.([a-z]\w*))?(?:\(.*\))?/) {
          #expect(known.contains(String(name.1)), "\(page): \(quoted)")
          // `Get.swift` is a file.
          guard let member = name.2, member != "swift" else { continue }
          #expect(declared[String(name.1)]?.contains(String(member)) == true, "\(page): \(quoted)")
        }
      }
    }
  }

  /// A comment of the sources that says `Type.member` of a type of ours.
  @Test func `members that comments name exist`() throws {
    let declared = try Declarations(of: ["Sources"])
    var count = 0
    for file in SourceTree.files(below: "Sources", suffix: ".swift") {
      for line in try SourceTree.lines(file) where line.contains("//") && line.contains("`") {
        for match in line.matches(of: /`([A-Z]\w*[a-z]\w*)\.([a-z]\w*)(?:\([^`]*)?`/) {
          guard declared.types.contains(String(match.1)) else { continue }
          count += 1
          #expect(declared.members[String(match.1)]?.contains(String(match.2)) == true, "\(file): \(match.0)")
        }
      }
    }
    #expect(count > 0)
  }

  /// A step of the model is named after the function that makes it, such as `Claim.append`.
  @Test(arguments: [("spool", 30), ("standing", 15)])
  func `functions that the models name exist`(model: String, count: Int) throws {
    let known = try Self.words()
    let model = try SourceTree.lines("Tests/Models/\(model).pml").joined(separator: "\n")
    let names = model.matches(of: /\b([A-Z]\w*[a-z]\w*)\.([a-z]\w*)/)
    #expect(names.count > count)
    for name in names {
      #expect(known.contains(String(name.1)) && known.contains(String(name.2)), "\(name.0)")
    }
  }

  /// The words of the Swift files' text and paths.
  private static func words() throws -> Set<String> {
    var words: Set<String> = []
    for folder in ["Sources", "Tests"] {
      for file in filesBelow("\(SourceTree.root)/\(folder)") where file.hasSuffix(".swift") {
        let bytes = try readFile("\(SourceTree.root)/\(folder)/\(file)") + Array(file.utf8)
        for word in bytes.split(whereSeparator: { !Declarations.isWord($0) }) {
          words.insert(String(decoding: word, as: UTF8.self))
        }
      }
    }
    return words
  }
}
