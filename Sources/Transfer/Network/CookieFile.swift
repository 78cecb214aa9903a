/// The form of a file with cookies, as curl and browsers' extensions write it.
package enum CookieFile {
  /// What a file is found to be.
  package enum Verdict: Equatable {
    /// Every line is a cookie, a comment or blank.
    case valid
    /// There is no cookie.
    case empty
    /// The number of a line that is none, from 1.
    case defect(line: Int)
  }

  /// Looks at each line of the file's contents.
  package static func check(_ text: [UInt8]) -> Verdict {
    var count = 0
    for (index, line) in text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
      let isComment = line.first == UInt8(ascii: "#") && !line.starts(with: "#HttpOnly_".utf8)
      if isComment || line.allSatisfy({ $0 == 0x0D || $0 == 0x20 || $0 == 0x09 }) { continue }
      // A value may be empty, and its tab left out.
      let fields = line.split(separator: 0x09, omittingEmptySubsequences: false)
      guard fields.count == 7 || fields.count == 6,
        ["TRUE", "FALSE"].contains(where: { fields[1].elementsEqual($0.utf8) })
      else { return .defect(line: index + 1) }
      count += 1
    }
    return count == 0 ? .empty : .valid
  }
}
