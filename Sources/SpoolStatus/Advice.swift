package import Spool

/// What a person may do about a failure. Pure.
package struct Advice: Sendable, Equatable {
  package let text: String
  /// Whether attempts fail until somebody does it. Otherwise it may be enough to wait.
  package let isUrgent: Bool
  private let needsURL: Bool

  /// - Parameter code: as a `failed:` line has it.
  package init(for code: String) {
    let row = FailureCode.row(of: code)
    text = row?.advice ?? "The last line of the job's file says what happened."
    isUrgent = row?.mayPassByItself != true
    needsURL = row?.needsURL == true
  }

  /// The command that a person gives when that is done, for a shell.
  package func command(for name: FileName, of spool: String) -> String {
    let command = ShellWords.command(needsURL ? "url" : "retry", name, of: spool)
    return needsURL ? command + " URL" : command
  }
}

/// What a failure code means, and what comes next, for a person. Pure.
package struct FailureExplanation {
  package let lines: [String]

  package static let all: [(code: String, meaning: String)] =
    FailureCode.allCases.flatMap { code in code.labels.map { ($0, code.meaning) } }

  /// - Parameter label: as a `failed:` line has it.
  /// - Returns: nil for a text that is no code.
  package init?(of label: String) {
    guard let code = FailureCode(label: label), let row = FailureCode.row(of: label) else { return nil }
    let next =
      row.failureClass == .permanent
      ? "Permanent: the job goes to failed/ at once."
      : "Temporary: the job goes to partial/, and is tried again"
        + (!row.burnsAttempt
          ? ". No attempt is counted."
          : row.blame == .server
            ? " until its patience with the server is over. Attempts count from the fourth in a row, while others are"
              + " served; with get --tries, each."
            : row.isMismatch
              ? ", but not after the third mismatch, nor if the file is wrong in the same way twice, nor once its"
                + " attempts are used up."
              : " until its attempts are used up.")
    lines = [code.meaning, next, row.advice]
  }
}

/// Commands that a person can copy into a shell, whatever bytes the names have. Pure.
package enum ShellWords {
  /// `spoolrun VERB --spool SPOOL NAME`.
  package static func command(_ verb: String, _ name: FileName, of spool: String) -> String {
    let dashes = name.bytes.first == UInt8(ascii: "-") ? " --" : ""
    return "spoolrun \(verb) --spool \(quoted(spool))\(dashes) \(quoted(name.bytes))"
  }

  package static func quoted(_ text: String) -> String { quoted(Array(text.utf8)) }

  /// One word, free of control characters.
  package static func quoted(_ bytes: [UInt8]) -> String {
    let isPlain = bytes.allSatisfy { isAlphanumeric($0) || "-._/:".utf8.contains($0) }
    let text = String(decoding: bytes, as: UTF8.self)
    if isPlain, !bytes.isEmpty { return text }
    if Array(text.utf8) == bytes, escaped(text) == text {
      return "'" + text.split(at: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
    // As bash(1), zsh(1), ksh(1) and POSIX (2024) read it. Three octal digits end by themselves.
    return "$'" + bytes.map(escape).joined() + "'"
  }

  private static func escape(_ byte: UInt8) -> String {
    let isShown = (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "'") && byte != UInt8(ascii: "\\")
    if isShown { return String(UnicodeScalar(byte)) }
    let digits = String(byte, radix: 8)
    return "\\" + String(repeating: "0", count: 3 - digits.count) + digits
  }
}
