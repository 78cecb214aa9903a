internal import Spool

/// A start tag in the text of a feed, with its mistakes.
struct XMLStartTag {
  struct Attribute {
    let name: [UInt8]
    /// Where its value is.
    let value: Range<Int>
  }

  let name: [UInt8]
  private(set) var attributes: [Attribute] = []
  /// Whether it ends in `/>`.
  private(set) var isEmpty = false
  /// Where the text goes on behind it.
  private(set) var end = 0
  private(set) var mistakes: [(what: String, index: Int)] = []

  /// The tag at the text's position; nil if it is not complete.
  init?(_ text: XMLText) {
    let nameEnd = text.nameEnd(from: text.position + 1)
    name = Array(text[(text.position + 1)..<nameEnd])
    if !read(text, from: nameEnd) { return nil }
  }

  private mutating func finish(_ end: Int, isEmpty: Bool = false) -> Bool {
    (self.end, self.isEmpty) = (end, isEmpty)
    return true
  }

  /// - Returns: whether the tag is complete.
  private mutating func read(_ text: XMLText, from start: Int) -> Bool {
    var index = start
    while true {
      index = text.pastSpace(index)
      if index >= text.end { return false }
      if text[index] == UInt8(ascii: ">") { return finish(index + 1) }
      if text[index] == UInt8(ascii: "/") {
        if index + 1 == text.end { return false }
        if text[index + 1] == UInt8(ascii: ">") { return finish(index + 2, isEmpty: true) }
      }
      let name = Array(text[index..<text.nameEnd(from: index)])
      let equals = text.pastSpace(index + name.count)
      if equals >= text.end { return false }
      guard text.length(of: ByteSet.nameStarts, from: index) > 0, text[equals] == UInt8(ascii: "=") else {
        mistakes.append(("an attribute without a value", index))
        index += max(1, name.count)
        continue
      }
      let begin = text.pastSpace(equals + 1)
      if begin >= text.end { return false }
      let quote = text[begin]
      let isQuoted = quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
      let first = isQuoted ? begin + 1 : begin
      let end = first + text.length(until: ByteSet.ends, from: first)
      let stop = isQuoted ? text.index(of: quote == 0x27 ? "'" : "\"", from: first) : end
      guard var stop, stop < text.end else { return false }
      if !isQuoted, text[stop] == UInt8(ascii: ">"), stop > first + 1, text[stop - 1] == UInt8(ascii: "/") { stop -= 1 }
      if !isQuoted { mistakes.append(("an attribute without quotes", begin)) }
      if attributes.contains(where: { $0.name == name }) {
        mistakes.append(("two attributes of one name", index))
      } else {
        attributes.append(Attribute(name: name, value: first..<stop))
      }
      index = isQuoted ? stop + 1 : stop
    }
  }
}
