import TestSupport

/// What the Swift files declare: types, and the members of each. It reads lines, not the language: a type has what is
/// declared between the line that begins it, or an extension of it, and the last brace.
struct Declarations {
  private(set) var members: [String: Set<String>] = [:]
  /// Those that are not only extended.
  private(set) var types: Set<String> = []

  /// - Parameter folders: below the root of the sources.
  init(of folders: [String]) throws {
    for folder in folders {
      for file in filesBelow("\(SourceTree.root)/\(folder)") where file.hasSuffix(".swift") {
        try read(SourceTree.lines("\(folder)/\(file)"))
      }
    }
  }

  private static let typeWords: Set = ["struct", "class", "enum", "protocol", "extension", "actor"]
  private static let memberWords: Set = ["func", "var", "let", "typealias", "struct", "class", "enum", "actor"]

  private mutating func read(_ lines: [String]) {
    var depth = 0
    var scopes: [(type: String, depth: Int)] = []
    for line in lines {
      let code = Self.code(of: line)
      let words = code.split { !Self.isWord($0) && $0 != UInt8(ascii: ".") }.map { String(decoding: $0, as: UTF8.self) }
      var found: Set<String> = []
      for (word, next) in zip(words, words.dropFirst()) where Self.memberWords.contains(word) { found.insert(next) }
      if words.first == "case" { found.formUnion(words) }
      if let type = scopes.last?.type { members[type, default: []].formUnion(found) }
      for (word, next) in zip(words, words.dropFirst()) where Self.typeWords.contains(word) {
        guard let type = next.split(separator: ".").last.map(String.init), next.first?.isUppercase ?? false else {
          break
        }
        if word != "extension" { types.insert(type) }
        scopes.append((type, depth))
        break
      }
      depth += code.reduce(0) { $0 + ($1 == UInt8(ascii: "{") ? 1 : $1 == UInt8(ascii: "}") ? -1 : 0) }
      if code.contains(UInt8(ascii: "}")) {
        while let last = scopes.last, depth <= last.depth { scopes.removeLast() }
      }
    }
  }

  /// Without comments and the contents of strings.
  private static func code(of line: String) -> [UInt8] {
    var code: [UInt8] = []
    var (isInString, isEscaped) = (false, false)
    for byte in line.utf8 {
      if isEscaped {
        isEscaped = false
      } else if byte == UInt8(ascii: "\"") {
        isInString.toggle()
      } else if isInString {
        isEscaped = byte == UInt8(ascii: "\\")
      } else {
        if byte == UInt8(ascii: "/"), code.last == byte { return code.dropLast() }
        code.append(byte)
      }
    }
    return code
  }

  static func isWord(_ byte: UInt8) -> Bool {
    byte == 0x5F || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF)
  }
}
