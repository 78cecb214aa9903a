/// One line of a list of digests, as sha256sum(1), cksfv(1) and rhash(1) check it.
package struct SumLine: Sendable, Equatable {
  /// The format of the list.
  package enum Style: Sendable {
    /// `HEX  PATH`, as md5sum(1) and sha256sum(1) print it; for a CRC-32 `PATH HEX`, as cksfv(1) does.
    case plain
    /// `SHA256 (PATH) = HEX`, as the BSDs and `sha256sum --tag` print it.
    case tagged
  }

  /// The line without its newline.
  package let text: String

  /// - Parameter path: of the file.
  /// - Returns: nil for a path that a line of this style cannot have.
  package init?(_ digest: Digest, _ path: String, _ style: Style) {
    let path = Self.distinct(path)
    guard digest.algorithm != .crc32 else {
      // SFV knows no escapes.
      if path.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D }) { return nil }
      text = style == .plain ? "\(path) \(digest)" : "\(digest.algorithm.tag) (\(path)) = \(digest)"
      return
    }
    let escaped = Self.escaped(path)
    let mark = escaped == path ? "" : "\\"
    text = mark + (style == .plain ? "\(digest)  \(escaped)" : "\(digest.algorithm.tag) (\(escaped)) = \(digest)")
  }

  /// The same path, with `./` before what some reader takes for something else: `-` is standard input for sha256sum,
  /// `;` begins a comment for cksfv, `#` one for rhash, which also drops `*`, blanks and a backslash.
  private static func distinct(_ path: String) -> String {
    guard let first = path.utf8.first, "-;#* \t\\".utf8.contains(first) else { return path }
    return "./\(path)"
  }

  /// As GNU coreutils escape a name: a backslash at the start of the line shows it (sha256sum(1)).
  private static func escaped(_ path: String) -> String {
    var result = ""
    for scalar in path.unicodeScalars {
      switch scalar {
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}

extension DigestAlgorithm {
  /// The name in a tagged line.
  fileprivate var tag: String { rawValue.uppercased() }
}
