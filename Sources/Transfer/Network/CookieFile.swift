internal import Glibc

/// A file with cookies in Netscape's format, as curl and browsers' extensions write it: domain, whether its subdomains
/// count, path, whether it is for TLS alone, expiry, name, value.
package enum CookieFile {
  /// What a file is found to be.
  package enum Verdict: Equatable {
    /// Every line is a cookie, a comment or blank.
    case valid
    /// There is no cookie.
    case empty
    /// The number of a line that is none, from 1, and why.
    case defect(line: Int, String)
  }

  private struct Problem: Error {
    let reason: String
  }

  /// Looks at each line of the file's contents.
  package static func check(_ text: [UInt8]) -> Verdict {
    var isEmpty = true
    for (number, line) in numbered(text) {
      do throws(Problem) {
        if try cookie(line) != nil { isEmpty = false }
      } catch {
        return .defect(line: number, error.reason)
      }
    }
    return isEmpty ? .empty : .valid
  }

  /// The cookies of a file, each as a line that libcurl reads as it is meant. libcurl would drop those whose expiry is
  /// empty, or before 1970, without a word.
  /// - Parameter path: of the file. One that cannot be read has none.
  static func cookies(in path: String) -> [[UInt8]] {
    guard let file = fopen(path, "re") else { return [] }
    defer { fclose(file) }
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = fread(&buffer, 1, buffer.count, file)
      if count == 0 { break }
      text += buffer[..<count]
    }
    // Lines that are none were refused when the file was looked at; it may have changed since.
    return numbered(text).compactMap { _, line in
      do throws(Problem) { return try cookie(line) } catch { return nil }
    }
  }

  private static func numbered(_ text: [UInt8]) -> [(Int, ArraySlice<UInt8>)] {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let lines = text.dropFirst(text.starts(with: mark) ? mark.count : 0)
      .split(separator: 0x0A, omittingEmptySubsequences: false)
    return lines.enumerated().map { ($0 + 1, $1.last == 0x0D ? $1.dropLast() : $1) }
  }

  /// - Returns: nil for a comment and a blank line.
  private static func cookie(_ line: ArraySlice<UInt8>) throws(Problem) -> [UInt8]? {
    let isComment = line.first == UInt8(ascii: "#") && !line.starts(with: "#HttpOnly_".utf8)
    if isComment || line.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { return nil }
    // A value may be empty, and its tab left out.
    var fields = line.split(separator: 0x09, omittingEmptySubsequences: false).map(Array.init)
    guard fields.count == 7 || fields.count == 6 else {
      throw Problem(reason: "it has not 7 fields with tabs between them")
    }
    guard !fields[0].isEmpty, !fields[5].isEmpty else { throw Problem(reason: "it has no domain, or no name") }
    let (includesSubdomains, isForTLS) = (fields[1].map(uppercasedASCII), fields[3].map(uppercasedASCII))
    guard ["TRUE", "FALSE"].contains(where: { includesSubdomains.elementsEqual($0.utf8) }) else {
      throw Problem(reason: "its second field is neither TRUE nor FALSE")
    }
    (fields[1], fields[3]) = (includesSubdomains, isForTLS)
    if fields[2].isEmpty { fields[2] = [UInt8(ascii: "/")] }
    fields[4] = try expiry(fields[4])
    return Array(fields.joined(separator: [0x09]))
  }

  /// Seconds since 1970; 0 for a cookie of the session, for which exporters write nothing, -1 or a word.
  private static func expiry(_ field: [UInt8]) throws(Problem) -> [UInt8] {
    let session = [UInt8(ascii: "0")]
    if field.isEmpty || field.first == UInt8(ascii: "-") { return session }
    if field.map(lowercasedASCII).elementsEqual("session".utf8) { return session }
    let parts = field.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.allSatisfy({ decimal($0) != nil }) else {
      throw Problem(reason: "its fifth field, the expiry, is no number of seconds since 1970")
    }
    return Array(parts[0])
  }
}
