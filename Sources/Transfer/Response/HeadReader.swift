/// Puts the head of the final HTTP response together from the lines that libcurl delivers. Pure.
package struct HeadReader {
  /// What one line completes.
  package enum Event {
    case nothing
    case head(ResponseHead)
    /// The reason why this cannot be the head of an HTTP response, or not one for us.
    case malformed(String)
  }

  /// For all lines of one request together: interim responses, the head, trailers.
  static let limit = 256 * 1024

  private var size = 0
  private var status: Int?
  private var fields: [(name: String, value: String)] = []
  private var isComplete = false
  private var folds = 0
  /// Servers do not fold at all any more; 256 KiB of folds would keep the loop busy for a minute.
  private static let mostFolds = 100

  /// Before the first status line.
  package init() {}

  /// Takes one line with its line end.
  package mutating func take(_ line: UnsafeRawBufferPointer) -> Event {
    size += line.count
    guard size <= Self.limit else { return .malformed("more than 256 KiB of header fields") }
    guard !isComplete else { return .nothing }  // a trailer field

    var length = line.count
    if length > 0, line[length - 1] == UInt8(ascii: "\n") { length -= 1 }
    if length > 0, line[length - 1] == UInt8(ascii: "\r") { length -= 1 }
    let bytes = UnsafeRawBufferPointer(rebasing: line[..<length])

    if bytes.starts(with: "HTTP/".utf8) {
      guard let code = Self.status(of: bytes) else { return .malformed("no status in the status line") }
      // Other 1xx are interim; no request asks for another protocol (RFC 9110, 15.2.2).
      guard code != 101 else { return .malformed("switch of protocols that was not requested") }
      (status, fields) = (code, [])
      return .nothing
    }
    guard let status else { return .malformed("no status line") }
    if bytes.isEmpty {
      guard status >= 200 else {
        self.status = nil
        return .nothing
      }
      isComplete = true
      return .head(ResponseHead(status: status, fields: fields))
    }
    addField(bytes)
    return folds > Self.mostFolds ? .malformed("more than \(Self.mostFolds) folded lines of header fields") : .nothing
  }

  private mutating func addField(_ line: UnsafeRawBufferPointer) {
    if line.first == 0x20 || line.first == 0x09 {  // obsolete folding (RFC 9112, 5.2)
      guard let last = fields.indices.last else { return }
      // Trimmed again, as either part may be empty. This reads the whole value each time, hence the limit.
      folds += 1
      fields[last].value = trimmed(fields[last].value + " " + trimmed(String(decoding: line, as: UTF8.self)))
      return
    }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
    let name = String(unsafeUninitializedCapacity: colon) { name in
      for index in 0..<colon { name.initializeElement(at: index, to: lowercasedASCII(line[index])) }
      return colon
    }
    let value = UnsafeRawBufferPointer(rebasing: trimmed(line[(colon + 1)...]))
    fields.append((name, name == "location" ? percentEncoded(value) : String(decoding: value, as: UTF8.self)))
  }

  /// `HTTP/1.1 206 Partial Content`, `HTTP/2 206 `
  private static func status(of line: UnsafeRawBufferPointer) -> Int? {
    let words = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
    guard words.count >= 2, words[1].count == 3, let code = decimal(words[1]), code >= 100
    else { return nil }
    return Int(code)
  }
}
