package import Spool

/// What a person may do about a failure. Pure.
package struct Advice: Sendable, Equatable {
  enum Step { case retry, url }

  /// One sentence.
  package let text: String
  /// Whether attempts fail until somebody does it. Otherwise it may be enough to wait.
  package let isUrgent: Bool
  private let step: Step

  private init(_ text: String, isUrgent: Bool = true, _ step: Step = .retry) {
    (self.text, self.isUrgent, self.step) = (text, isUrgent, step)
  }

  /// - Parameter code: as a `failed:` line has it.
  package init(for code: String) {
    if let known = FailureCode(rawValue: code) {
      self = Self.of(known)
    } else if code.begins(with: "http-"), let status = Int(code.dropFirst(5)) {
      self = Self.of(status: status)
    } else {
      self.init("The last line of the job's file says what happened.")
    }
  }

  private static func of(status: Int) -> Advice {
    switch status {
    case 401, 403, 407:
      Advice("The server wants a login, or the link has expired: give the job a header or another link.", .url)
    case 404, 410: Advice("The file is not there: look for its new place.", .url)
    case 408, 425, 429, 500...599:
      Advice("The server was busy or broken: wait, or name another mirror.", isUrgent: false)
    default: Advice("The server refuses the request: open the link in a browser.", .url)
    }
  }

  private static func of(_ code: FailureCode) -> Advice {
    switch code {
    case .resolve, .connect, .timeout, .stalled, .cut, .shortBody:
      Advice("The host could not be reached, or broke off: wait, or name another mirror.", isUrgent: false)
    case .noNetwork: Advice("This machine has no network: the job goes on when it has one.", isUrgent: false)
    case .tls:
      Advice("The host's certificate is not trusted: check the link, the clock and the certificates of this machine.")
    case .badResponse, .redirect: Advice("The server does not answer as it should: open the link in a browser.", .url)
    case .encoded: Advice("The file came encoded: write encoded: keep or encoded: decode into the job's file.")
    case .mismatchSize, .mismatchChecksum, .mismatchSHA256, .mismatchSHA512, .mismatchSHA1, .mismatchMD5, .mismatch:
      Advice("The file is not what the job declares: check its digests and its size.")
    case .otherKind:
      Advice(
        "The server sent another file, perhaps a login page. If it is the right one, cancel the job and add it anew.",
        .url)
    case .badEntries: Advice("The list of the standing order cannot be read: check its link and its format.", .url)
    case .rejected, .hook, .hookChanged: Advice("The hook verify did not accept the file: see its output.")
    case .resolveHook, .unresolvable: Advice("The hook resolve gave no link: see its output.")
    case .deliver: Advice("The hook deliver did not take the file: see its output. Nothing is fetched again.")
    case .diskFull: Advice("The disk is full: make space.")
    case .noOutput: Advice("The directory for the file cannot be written to: make it writable.")
    case .proxy: Advice("The proxy fails: check it, and how it is set.")
    case .tooLargeHere: Advice("The file is larger than this file system or ulimit -f allows: raise the limit.")
    case .io: Advice("The disk failed: see the kernel's log first.")
    case .http: of(status: 0)
    case .malformed: Advice("The job's file is wrong: correct the line that the reason names.")
    case .badOutput: Advice("The file cannot be put there: change output in the job's file.")
    case .outputExists:
      Advice("Another file has the name: move it away, or write overwrite: yes into the job's file.")
    case .tooLarge: Advice("The file is larger than max-size allows: raise it, or cancel the job.")
    case .expired: Advice("The job's time is over: change expires in its file, or cancel it.")
    case .protocol: Advice("The worker does not allow this kind of URL: see --protocols.")
    case .killsWorker: Advice("Workers died with this job: see their logs first.")
    }
  }

  // MARK: commands

  /// The command that a person gives when that is done, for a shell.
  package func command(for name: FileName, of spool: String) -> String {
    switch step {
    case .retry: ShellWords.command("retry", name, of: spool)
    case .url: ShellWords.command("url", name, of: spool) + " URL"
    }
  }
}

/// Commands that a person can copy into a shell, whatever bytes the names have. Pure.
enum ShellWords {
  /// `spoolrun VERB --spool SPOOL NAME`.
  static func command(_ verb: String, _ name: FileName, of spool: String) -> String {
    let dashes = name.bytes.first == UInt8(ascii: "-") ? " --" : ""
    return "spoolrun \(verb) --spool \(quoted(Array(spool.utf8)))\(dashes) \(quoted(name.bytes))"
  }

  /// One word, free of control characters.
  static func quoted(_ bytes: [UInt8]) -> String {
    let isPlain = bytes.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || Array("-._/".utf8).contains(byte)
    }
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
