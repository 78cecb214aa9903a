import TestSupport
import Testing

/// Rules of CONTRIBUTING.md that `swift format lint` does not check.
@Suite struct StyleTests {
  /// A line with a URL may be longer: it cannot be broken there.
  @Test func `no line has more than 120 columns`() throws {
    let swift = ["Sources", "Tests"].flatMap { SourceTree.files(below: $0, suffix: ".swift") }
    #expect(swift.count > 300)
    for file in swift { try expectNarrow(file) { _ in true } }
  }

  @Test(arguments: [".ci", "Benchmarks", "Sources", "Tests", "contrib", "debian", "scripts"])
  func `no comment has more than 120 columns`(folder: String) throws {
    // Commands and tables in other languages may be longer.
    let starts = ["#", "//", "/*", "* "]
    let files = filesBelow("\(SourceTree.root)/\(folder)").filter { name in
      let ending = name.split(separator: "/").last?.split(separator: ".").dropFirst().last
      return ending.map { ["c", "go", "h", "js", "pml", "py", "sh"].contains($0) } ?? true
    }
    #expect(!files.isEmpty)
    for file in files {
      try expectNarrow("\(folder)/\(file)") { line in
        let text = line.drop { $0 == " " || $0 == "\t" }
        return starts.contains { text.hasPrefix($0) } && !text.hasPrefix("#define")
      }
    }
  }

  private func expectNarrow(_ file: String, where concerns: (String) -> Bool) throws {
    for (index, line) in try SourceTree.lines(file).enumerated() where line.utf8.count > 120 {
      let isWide = concerns(line) && line.count > 120 && !line.contains("://")
      #expect(!isWide, "\(file):\(index + 1): \(line.count) columns")
    }
  }

  // MARK: foreign text

  /// What cuts text between characters, or compares characters: a mark of Unicode behind a delimiter hides it. See
  /// `ExactText`. Screens are drawn in characters.
  @Test func `text is cut at bytes`() throws {
    let forbidden =
      #/
      \.(hasPrefix|hasSuffix|lowercased|is(Letter|Newline|Whitespace))\b | Index\(of:\ " | firstRange\(of:\ "[^"]*"\)
      | split\(separator:\ " | \.contains\("[^"a-z]+"\) | \$0\ [!=]=\ "([^"\\a-z0-9]|\\.)" | \.(first|last)\ [!=]=\ "
      /#
    for file in SourceTree.files(below: "Sources", suffix: ".swift") where !file.contains("/Watch/") {
      for (index, line) in try SourceTree.lines(file).enumerated() {
        let isOfScalars = line.contains("unicodeScalars") || line.contains(".properties.")
        let isComment = line.drop { $0 == " " }.hasPrefix("//")
        if isOfScalars || isComment { continue }
        #expect(!line.contains(forbidden), "\(file):\(index + 1): \(line)")
      }
    }
  }

  // MARK: size

  @Test func `a folder has at most 20 files`() {
    var counts: [String: Int] = [:]
    for file in SourceTree.files(below: "Sources", suffix: ".swift") {
      counts[file.split(separator: "/").dropLast().joined(separator: "/"), default: 0] += 1
    }
    for (folder, count) in counts {
      #expect(count <= 20, "\(folder) has \(count) files")
    }
  }

  @Test func `a file has at most 600 lines`() throws {
    for file in ["Sources", "Tests"].flatMap({ SourceTree.files(below: $0, suffix: ".swift") }) {
      let count = try SourceTree.lines(file).count
      #expect(count <= 600, "\(file) has \(count) lines")
    }
  }
}
