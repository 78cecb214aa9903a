import TestSupport

/// A page of the manual, read from its mdoc source (mdoc(7)).
struct Manual {
  private let lines: [String]

  init(_ path: String) throws { lines = try SourceTree.lines(path) }

  /// The lines of one section, without its heading.
  func section(_ title: String) -> [String] {
    let start = lines.drop { $0 != ".Sh \(title)" }.dropFirst()
    return Array(start.prefix { !$0.hasPrefix(".Sh ") })
  }

  /// An entry of a list: the words behind `.It`, and the text up to the next one.
  struct Item {
    let head: [String]
    let body: [String]

    /// The text up to the end of its first sentence, without macros.
    var firstSentence: String {
      var text = ""
      for line in body {
        let words = line.split(separator: " ")
        let isMacro = line.hasPrefix(".")
        for word in isMacro ? words.dropFirst() : words[...] {
          // mdoc sets a closing mark of its own close to the word before it.
          text += (text.isEmpty || word == "." || word == "," ? "" : " ") + word
        }
        if text.hasSuffix(".") { break }
      }
      return text
    }
  }

  /// The entries of all lists in a section, nested ones included.
  func items(_ title: String) -> [Item] {
    var items: [Item] = []
    for line in section(title) {
      if line.hasPrefix(".It ") {
        items.append(Item(head: line.split(separator: " ").dropFirst().map(String.init), body: []))
      } else if line == ".El" {
        continue
      } else if let last = items.popLast() {
        items.append(Item(head: last.head, body: last.body + [line]))
      }
    }
    return items
  }

  /// The names that a section's entries define with the macro `macro`, such as `url` in `.It Cm url : Ar URL`.
  func names(_ title: String, _ macro: String) -> [String] {
    items(title).filter { $0.head.first == macro }.map { $0.head[1] }
  }

  /// `-v` and `--verbose` of `Fl v , -verbose Ar FILE`.
  static func options(_ words: some Sequence<String>) -> [String] {
    words.filter { $0 != "Fl" && $0 != "," }.prefix { $0 != "Ar" && $0 != "Oc" }.map { "-\($0)" }
  }
}
