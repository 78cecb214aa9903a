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

  @Test(arguments: [".ci", "Benchmarks", "Models", "Sources", "Tests", "Torture", "contrib", "debian", "scripts"])
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

  // MARK: doc comments

  /// What satisfies a protocol of the language or its library says what the protocol says.
  private static let ofProtocols: Set<Substring> = [
    "description", "debugDescription", "customMirror", "errorDescription", "==", "<", "hash", "next", "encode",
    "unownedExecutor",
  ]

  @Test func `what other modules see has a doc comment`() throws {
    var count = 0
    for file in SourceTree.files(below: "Sources", suffix: ".swift") {
      var isDocumented = false
      for (index, line) in try SourceTree.lines(file).enumerated() {
        let text = line.drop { $0 == " " }
        // An attribute may be between a comment and the declaration.
        if text.hasPrefix("@"), Self.declared(in: text) == nil { continue }
        if let name = Self.declared(in: text), !Self.ofProtocols.contains(name) {
          count += 1
          #expect(isDocumented, "\(file):\(index + 1): \(text)")
        }
        isDocumented = text.hasPrefix("///")
      }
    }
    #expect(count > 500)
  }

  /// The name that a line declares for other modules, such as `init`; nil if it declares none.
  private static func declared(in line: Substring) -> Substring? {
    guard line.contains("package") || line.contains("public") else { return nil }
    let keywords = [
      "actor", "class", "enum", "func", "let", "macro", "protocol", "struct", "subscript", "typealias", "var",
    ]
    var isVisible = false
    var keyword: Substring?
    for word in line.split(separator: " ") {
      if let keyword { return keyword == "subscript" ? keyword : name(word) }
      if word.hasPrefix("init") || word.hasPrefix("subscript") { return isVisible ? name(word) : nil }
      if keywords.contains(String(word)) {
        guard isVisible else { return nil }
        // `class func`
        keyword = word
      } else if word == "package" || word == "public" {
        isVisible = true
      } else if word == "import" || word == "extension" || word.hasPrefix("//") {
        return nil
      }
    }
    return nil
  }

  private static func name(_ word: Substring) -> Substring { word.prefix { !"(<:=?".contains($0) || $0 == word.first } }
}
