internal import Glibc
internal import Spool

/// Makes XML that a parser takes of what is in feeds in its place: a raw `&` or `<`, entities of HTML, control
/// characters, attributes without quotes, missing end tags, prefixes without a namespace. Well-formed XML stays what it
/// means. Comments, instructions and the document type are left out; entities that it declares are refused.
///
/// A parser that recovers by itself drops what it does not understand: of the URL `a?x=1&y=2`, libxml2 leaves
/// `a?x=1=2`, which is another file.
struct XMLMender {
  private(set) var problems = ListProblems()

  private let decoder: TextDecoder
  private var text = XMLText()
  private var end: Int { text.end }
  private var position: Int {
    get { text.position }
    set { text.position = newValue }
  }
  private var isLast = false
  private var mended: [UInt8] = []
  /// The open elements, each with the prefixes that are declared outside it.
  private var open: [(name: [UInt8], outer: Set<[UInt8]>)] = []
  private var hasRoot = false
  private var isInCDATA = false
  private var prefixes: Set<[UInt8]> = [Array("xml".utf8), Array("xmlns".utf8)]

  init(_ decoder: TextDecoder) {
    self.decoder = decoder
    if let problem = decoder.problem { problems.note(problem) }
  }

  /// Bytes of a tag or comment. Before 2.6, expat reads one that is not complete anew with each block (CVE-2023-52425),
  /// so that the time grows with the square of its length.
  static let longestMarkup = 1 << 20

  /// - Returns: what of the feed can be passed on by now, in UTF-8.
  /// - Throws: ``Defect`` for what no mending helps.
  mutating func take(_ block: [UInt8], isLast: Bool) throws(Defect) -> [UInt8] {
    self.isLast = isLast
    let (decoded, wrong) = decoder.decode(block, isLast: isLast)
    let known = text.append(decoded)
    for offset in wrong { note("a byte that is not of its charset", at: known + offset) }
    mended = []
    mended.reserveCapacity(end)
    while position < end, try step() {}
    if end - position > Self.longestMarkup {
      throw Defect(line: text.place(position).line, reason: "a tag or comment of over 1 MiB")
    }
    if isLast { try checkEnd() }
    return mended
  }

  private func checkEnd() throws(Defect) {
    let place =
      position < end
      ? "within a tag, a comment or a document type"
      : isInCDATA ? "within CDATA" : open.last.map { "before </\(escaped($0.name.prefix(40)))>" }
    if let place { throw Defect(line: text.place(position).line, reason: "XML: the text ends \(place)") }
  }

  private mutating func note(_ what: String, at index: Int) {
    if problems.count > problems.reasons.count { return problems.note("") }
    let (line, column) = text.place(index)
    problems.note("line \(line), byte \(column + 1): \(what)")
  }

  // MARK: tokens

  /// Takes the next token.
  /// - Returns: false where it is not complete.
  private mutating func step() throws(Defect) -> Bool {
    if isInCDATA { return takeCDATA() }
    guard text[position] == UInt8(ascii: "<") else { return takeText() }
    // The longest word that is looked for.
    if end - position < 9, !isLast, text.index(of: ">", from: position) == nil { return false }
    switch text[position + 1] {
    case UInt8(ascii: "/"): return takeEnd()
    case UInt8(ascii: "?"): return skip(from: 2, to: "?>")
    case UInt8(ascii: "!") where text.begins("<!--"): return skip(from: 4, to: "-->")
    case UInt8(ascii: "!") where text.begins("<!doctype"): return try skipDoctype()
    case UInt8(ascii: "!") where text.begins("<![CDATA["):
      isInCDATA = true
      pass(9)
    case _ where text.length(of: ByteSet.nameStarts, from: position + 1) > 0: return takeStart()
    default:
      note("a raw <", at: position)
      replace(1, by: "&lt;")
    }
    return true
  }

  /// Passes text on, if it is within the outermost element.
  private mutating func pass(_ count: Int) {
    let bytes = text[position..<position + count]
    if open.isEmpty {
      if text.pastSpace(position) < position + count { note("text outside of the outermost element", at: position) }
      return skip(to: position + count)
    }
    mended += bytes
    position += count
  }

  private mutating func replace(_ count: Int, by text: StaticString) {
    if !open.isEmpty { text.withUTF8Buffer { mended += $0 } }
    position += count
  }

  /// Skips up to a position, but for the ends of lines, by which a parser counts.
  private mutating func skip(to end: Int) {
    mended += [UInt8](repeating: 0x0A, count: text.lineEnds(position..<end).count)
    position = end
  }

  private mutating func skip(from head: Int, to word: StaticString) -> Bool {
    guard let found = text.index(of: word, from: position + head) else { return false }
    skip(to: found + word.utf8CodeUnitCount)
    return true
  }

  private mutating func skipDoctype() throws(Defect) -> Bool {
    var depth = 0
    for index in position..<min(end, position + Self.longestMarkup) {
      switch text[index] {
      case UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ">") where depth <= 0:
        skip(to: index + 1)
        return true
      case UInt8(ascii: "!") where text.begins("!entity", at: index):
        throw Defect(line: text.place(index).line, reason: "a DOCTYPE with entities, which no list needs")
      default: break
      }
    }
    return false
  }

  // MARK: text

  private mutating func takeText() -> Bool {
    pass(text.length(until: ByteSet.special))
    if position == end || text[position] == UInt8(ascii: "<") { return true }
    guard text[position] == UInt8(ascii: "&") else {
      // `]]>` is no text.
      if text[position] == UInt8(ascii: ">") { replace(1, by: "&gt;") } else { dropControl() }
      return true
    }
    guard let reference = text.reference(at: position, to: end, isWhole: isLast) else { return false }
    if reference.isSound {
      pass(reference.length)
    } else {
      noteReference(at: position, reference.length)
      replace(1, by: "&amp;")
    }
    return true
  }

  private mutating func takeCDATA() -> Bool {
    let close = text.index(of: "]]>", from: position)
    // A part of the end may be there.
    let stop = close ?? (isLast ? end : max(position, end - 2))
    if close == nil, stop == position { return false }
    while position < stop {
      pass(min(text.length(until: ByteSet.controls), stop - position))
      if position < stop { dropControl() }
    }
    if close != nil {
      pass(3)
      isInCDATA = false
    }
    return true
  }

  private mutating func dropControl() {
    note("a control character", at: position)
    position += 1
  }

  private mutating func noteReference(at index: Int, _ length: Int) {
    note(length == 1 ? "a raw &" : "\(escaped(text[index..<index + length])), which XML does not have", at: index)
  }

  // MARK: tags

  private mutating func takeEnd() -> Bool {
    guard let close = text.index(of: ">", from: position) else { return false }
    let name = Array(text[(position + 2)..<text.nameEnd(from: position + 2)])
    if let depth = open.lastIndex(where: { $0.name == name }) {
      if depth < open.count - 1 {
        note(
          "</\(escaped(name.prefix(40)))>, where </\(escaped(open[open.count - 1].name.prefix(40)))> is missing",
          at: position)
      }
      for element in open[depth...].reversed() { mended += Array("</".utf8) + element.name + Array(">".utf8) }
      prefixes = open[depth].outer
      open.removeSubrange(depth...)
    } else {
      note("</\(escaped(name.prefix(40)))> without a beginning", at: position)
    }
    skip(to: close + 1)
    return true
  }

  private mutating func takeStart() -> Bool {
    guard let tag = XMLStartTag(text) else { return false }
    for (what, index) in tag.mistakes { note(what, at: index) }
    defer { skip(to: tag.end) }
    if open.isEmpty, hasRoot {
      note("<\(escaped(tag.name.prefix(40)))> behind the end of the outermost element", at: position)
      return true
    }
    hasRoot = true
    let outer = prefixes
    mended.append(UInt8(ascii: "<"))
    mended += tag.name
    for attribute in tag.attributes where !declaresNothing(attribute) { write(attribute) }
    for prefix in unknownPrefixes(tag.name, tag.attributes) {
      note("the prefix \(escaped(prefix.prefix(40))) without a namespace", at: position)
      mended += Array(" xmlns:".utf8) + prefix + Array("=\"\(Self.nowhere)\"".utf8)
    }
    mended += Array((tag.isEmpty ? "/>" : ">").utf8)
    if tag.isEmpty { prefixes = outer } else { open.append((tag.name, outer)) }
    return true
  }

  /// The namespace of prefixes that have none.
  private static let nowhere = "undeclared:"

  private mutating func write(_ attribute: XMLStartTag.Attribute) {
    mended += [0x20] + attribute.name + Array("=\"".utf8)
    let end = attribute.value.upperBound
    var index = attribute.value.lowerBound
    while true {
      let next = min(end, index + text.length(until: ByteSet.specialInValue, from: index))
      mended += text[index..<next]
      if next == end { break }
      mended += replacement(of: next, to: end).utf8
      index = next + 1
    }
    mended.append(UInt8(ascii: "\""))
  }

  /// What comes in the place of a byte that an attribute's value cannot have, or can have only there.
  private mutating func replacement(of index: Int, to end: Int) -> String {
    switch text[index] {
    case UInt8(ascii: "\""): return "&quot;"
    case UInt8(ascii: "<"):
      note("a raw <", at: index)
      return "&lt;"
    case UInt8(ascii: "&"):
      let reference = text.reference(at: index, to: end, isWhole: true) ?? (1, false)
      if reference.isSound { return "&" }
      noteReference(at: index, reference.length)
      return "&amp;"
    default:
      note("a control character", at: index)
      return ""
    }
  }

  /// `xmlns:p=""` is no XML.
  private func declaresNothing(_ attribute: XMLStartTag.Attribute) -> Bool {
    attribute.name.starts(with: "xmlns:".utf8) && attribute.value.isEmpty
  }

  private mutating func unknownPrefixes(_ name: [UInt8], _ attributes: [XMLStartTag.Attribute]) -> [[UInt8]] {
    func prefix(_ name: [UInt8]) -> [UInt8]? { name.firstIndex(of: UInt8(ascii: ":")).map { Array(name[..<$0]) } }
    var found = prefix(name).map { [$0] } ?? []
    for attribute in attributes {
      guard let prefix = prefix(attribute.name) else { continue }
      if prefix == Array("xmlns".utf8), !attribute.value.isEmpty { prefixes.insert(Array(attribute.name.dropFirst(6))) }
      if !found.contains(prefix) { found.append(prefix) }
    }
    return found.filter { !prefixes.contains($0) }
  }
}

/// A start tag in the text of a feed, with its mistakes.
private struct XMLStartTag {
  typealias Attribute = (name: [UInt8], value: Range<Int>)

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
        attributes.append((name, first..<stop))
      }
      index = isQuoted ? stop + 1 : stop
    }
  }
}
