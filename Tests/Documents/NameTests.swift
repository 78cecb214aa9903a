import Glibc
import TestSupport
import Testing

/// What the pages for developers name has to exist.
@Suite struct NameTests {
  @Test(arguments: ["INTERNALS.md", "TESTING.md", "CONTRIBUTING.md"])
  func `types, members and paths that a page names exist`(page: String) throws {
    let known = try Self.words()
    for line in try SourceTree.lines(page) {
      for match in line.matches(of: /`([^`]+)`/) {
        let quoted = match.1
        if quoted.starts(with: /(Sources|Tests|Torture|Models|Benchmarks|scripts|man|contrib|docs)\//) {
          // A command with its arguments, or a path alone.
          let path = quoted.prefix { $0 != " " }
          #expect(access("\(SourceTree.root)/\(path)", F_OK) == 0, "\(page): \(quoted)")
        } else if let name = quoted.wholeMatch(of: /([A-Z]\w*[a-z]\w*)(?:\.([a-z]\w*))?(?:\(.*\))?/) {
          #expect(known.contains(String(name.1)), "\(page): \(quoted)")
          #expect(name.2.map { known.contains(String($0)) } ?? true, "\(page): \(quoted)")
        }
      }
    }
  }

  /// A step of the model is named after the function that makes it, such as `Claim.append`.
  @Test(arguments: [("spool", 30), ("standing", 15)])
  func `functions that the models name exist`(model: String, count: Int) throws {
    let known = try Self.words()
    let model = try SourceTree.lines("Models/\(model).pml").joined(separator: "\n")
    let names = model.matches(of: /\b([A-Z]\w*[a-z]\w*)\.([a-z]\w*)/)
    #expect(names.count > count)
    for name in names {
      #expect(known.contains(String(name.1)) && known.contains(String(name.2)), "\(name.0)")
    }
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte == 0x5F || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF)
  }

  /// The words of the Swift files' text and paths.
  private static func words() throws -> Set<String> {
    var words: Set<String> = []
    for folder in ["Sources", "Tests"] {
      for file in filesBelow("\(SourceTree.root)/\(folder)") where file.hasSuffix(".swift") {
        let bytes = try readFile("\(SourceTree.root)/\(folder)/\(file)") + Array(file.utf8)
        for word in bytes.split(whereSeparator: { !isWord($0) }) { words.insert(String(decoding: word, as: UTF8.self)) }
      }
    }
    return words
  }
}
