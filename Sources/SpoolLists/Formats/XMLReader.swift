internal import CExpat
internal import Spool

/// expat, without what a list does not need: entities are refused.
final class XMLReader {
  struct Element {
    /// Without its namespace.
    let name: String
    let namespace: String
    let attributes: [String: String]
    /// What relative URLs in it are relative to (RFC 3986 section 5.1.1); empty for the document's own URL.
    let base: String
  }

  protocol Receiver: AnyObject {
    func begin(_ element: Element, line: Int) throws(Defect)
    /// - Parameter text: what was in it, up to the next element.
    func end(text: String, line: Int) throws(Defect)
    /// Whether the text that comes now is wanted. If not, ``end(text:line:)`` gets an empty one.
    var keepsText: Bool { get }
  }

  static let deepest = 32
  private let deepest: Int
  private static let longestText = 64 << 10
  /// Between the namespace and the name: no character of XML.
  private static let separator: Character = "\u{1F}"
  /// Of the prefix `xml`.
  private static let ownNamespace: Substring = "http://www.w3.org/XML/1998/namespace"

  private let parser: XML_Parser
  private unowned let receiver: any Receiver
  private var text: [UInt8] = []
  /// Of the elements that are open.
  private var bases: [String] = []
  private var defect: Defect?
  /// Bytes given to expat.
  private var taken = 0
  /// Between the list and expat; nil where the list has to be well-formed.
  private var mender: XMLMender?

  /// - Parameter deepest: the maximum number of elements inside each other.
  init(_ receiver: any Receiver, deepest: Int = XMLReader.deepest, mending mender: XMLMender? = nil) throws(Defect) {
    // What is mended is in UTF-8, whatever it declares.
    let charset = mender == nil ? nil : "UTF-8"
    guard let parser = XML_ParserCreateNS(charset, XML_Char(bitPattern: Self.separator.asciiValue!)) else {
      throw Defect(line: nil, reason: "out of memory")
    }
    (self.parser, self.mender, self.deepest, self.receiver) = (parser, mender, deepest, receiver)
    XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
    XML_SetElementHandler(
      parser, { context, name, attributes in XMLReader.this(context)?.begin(name, attributes) },
      { context, _ in XMLReader.this(context)?.end() })
    XML_SetCharacterDataHandler(parser) { context, bytes, count in XMLReader.this(context)?.add(bytes, count) }
    XML_SetStartDoctypeDeclHandler(parser) { context, _, _, _, _ in
      XMLReader.this(context)?.refuse("a DOCTYPE, which no list needs")
    }
  }

  deinit { XML_ParserFree(parser) }

  func take(_ block: [UInt8], isLast: Bool) throws(Defect) {
    let block = try mender?.take(block, isLast: isLast) ?? block
    let status = block.withUnsafeBytes { bytes in
      XML_Parse(parser, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count), isLast ? 1 : 0)
    }
    if let defect { throw defect }
    if status != XML_STATUS_OK {
      throw Defect(line: line, reason: "XML: \(String(cString: XML_ErrorString(XML_GetErrorCode(parser))))")
    }
    taken += block.count
    // Expat is at the start of what is not complete yet.
    if !isLast, taken - Int(XML_GetCurrentByteIndex(parser)) > XMLMender.longestMarkup {
      throw Defect(line: line, reason: "a tag or comment of over 1 MiB")
    }
  }

  var problems: ListProblems { mender?.problems ?? ListProblems() }

  private var line: Int { Int(XML_GetCurrentLineNumber(parser)) }

  private static func this(_ context: UnsafeMutableRawPointer?) -> XMLReader? {
    guard let context else { return nil }
    let reader = Unmanaged<XMLReader>.fromOpaque(context).takeUnretainedValue()
    // expat may call once more after it was stopped.
    return reader.defect == nil ? reader : nil
  }

  private func refuse(_ reason: String) { stop(Defect(line: line, reason: reason)) }

  private func stop(_ defect: Defect) {
    self.defect = defect
    XML_StopParser(parser, 0)
  }

  private func begin(_ name: UnsafePointer<XML_Char>?, _ attributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?) {
    guard let name, bases.count < deepest else { return refuse("elements more than \(deepest) deep") }
    text.removeAll(keepingCapacity: true)
    var found: [String: String] = [:]
    var base = bases.last ?? ""
    var position = 0
    while let key = attributes?[position], let value = attributes?[position + 1] {
      // One of another vocabulary counts only where the element's own does not have it.
      let name = String(cString: key).split(separator: Self.separator)
      if name == [Self.ownNamespace, "base"] { base = resolved(String(cString: value).trimmedAsXML, against: base) }
      if let last = name.last, name.count == 1 || found[String(last)] == nil {
        found[String(last)] = String(cString: value)
      }
      position += 2
    }
    if base.utf8.count > Self.longestText { return refuse("an xml:base of over 64 KiB") }
    bases.append(base)
    let parts = String(cString: name).split(separator: Self.separator)
    let element = Element(
      name: parts.last.map { String($0) } ?? "", namespace: parts.count > 1 ? String(parts[0]) : "", attributes: found,
      base: base)
    do throws(Defect) { try receiver.begin(element, line: line) } catch { stop(error) }
  }

  private func end() {
    do throws(Defect) {
      try receiver.end(text: String(decoding: text, as: UTF8.self), line: line)
    } catch { stop(error) }
    text.removeAll(keepingCapacity: true)
    bases.removeLast()
  }

  private func add(_ bytes: UnsafePointer<XML_Char>?, _ count: Int32) {
    guard receiver.keepsText else { return }
    text += UnsafeRawBufferPointer(start: bytes, count: Int(count))
    if text.count > Self.longestText { refuse("an element with over 64 KiB of text") }
  }
}

extension XMLReader.Receiver { var keepsText: Bool { true } }

/// A reference to what `base` is of (RFC 3986 section 5.2.2). The base may be relative itself, and what comes of it has
/// the dots of both: whoever asks for it resolves them.
func resolved(_ reference: String, against base: String) -> String {
  func scheme(_ text: String) -> Substring? {
    let name = text.prefix(before: ":/?#")
    let isName = name.utf8.first.map { 0x61...0x7A ~= $0 | 0x20 } ?? false
    return isName && text[name.endIndex...].begins(with: ":") ? Substring(text.utf8[...name.endIndex]) : nil
  }
  if reference.isEmpty { return base }
  if base.isEmpty || scheme(reference) != nil { return reference }
  let own = scheme(base) ?? base[..<base.startIndex]
  if reference.begins(with: "//") { return "\(own)\(reference)" }
  let rest = base[own.endIndex...]
  let authority = rest.begins(with: "//") ? rest.dropFirstBytes(2).prefix(before: "/?#") : rest[..<rest.startIndex]
  let origin = base[..<authority.endIndex]
  if reference.begins(with: "/") { return "\(origin)\(reference)" }
  let path = base[authority.endIndex...].prefix(before: "?#")
  if reference.begins(with: "?") || reference.begins(with: "#") { return "\(origin)\(path)\(reference)" }
  guard let slash = path.utf8.lastIndex(of: 0x2F) else { return "\(origin)\(authority.isEmpty ? "" : "/")\(reference)" }
  return "\(origin)\(Substring(path.utf8[...slash]))\(reference)"
}

extension String {
  /// Without white space around it, as XML files are indented.
  var trimmedAsXML: String {
    let isSpace = { (byte: UInt8) in byte == 0x20 || (0x09...0x0D).contains(byte) }
    var bytes = utf8.drop(while: isSpace)
    while let last = bytes.last, isSpace(last) { bytes.removeLast() }
    return String(Substring(bytes))
  }
}
