package import Spool

/// What a person may do about a job that was given up. Pure.
package enum Advice {
  /// - Parameter code: as a `failed:` line has it.
  package static func text(for code: String) -> String {
    if let known = FailureCode(rawValue: code) { return text(for: known) }
    guard code.hasPrefix("http-"), let status = Int(code.dropFirst(5)) else {
      return "Read the job's file in failed/: its last line says what happened."
    }
    switch status {
    case 401, 403, 407:
      return "The server wants a login, or the link has expired: give the job a header or another link."
    case 404, 410: return "The file is not there: look for its new place, and give it to the job with spoolrun url."
    case 408, 425, 429, 500...599: return "The server was busy or broken each time: try again later."
    default: return "The server refuses the request: open the link in a browser."
    }
  }

  private static func text(for code: FailureCode) -> String {
    switch code {
    case .resolve, .connect, .timeout, .stalled, .cut, .shortBody, .noNetwork:
      "The host could not be reached, or broke off each time: try again later, or name another mirror."
    case .tls: "The host's certificate is not trusted: check the link, the clock and the certificates of this machine."
    case .badResponse, .redirect: "The server does not answer as it should: open the link in a browser."
    case .mismatchSize, .mismatchChecksum, .mismatchSHA256, .mismatchSHA512, .mismatchSHA1, .mismatchMD5, .mismatch:
      "The file is not what the job declares: check its digests and its size, then try again."
    case .otherKind: "The server sent something else, such as a login page: open the link in a browser."
    case .badEntries: "The list of the standing order cannot be read: check its link and its format."
    case .rejected, .hook, .hookChanged: "The verify hook did not accept the file: see its output, then try again."
    case .resolveHook, .unresolvable: "The resolve hook gave no link: see its output, then try again."
    case .deliver: "The deliver hook did not take the file: see its output, then try again. Nothing is fetched again."
    case .diskFull: "Make space, then try again."
    case .proxy: "Check the proxy, then try again."
    case .tooLargeHere: "The file is larger than this file system or ulimit -f allows."
    case .io: "The disk failed: see the kernel's log before you try again."
    case .http: text(for: "http-0")
    case .malformed: "The job's file is wrong: correct the line that the reason names, then try again."
    case .badOutput: "The file cannot be put there: change output in the job, then try again."
    case .outputExists: "Another file has the name: move it away, or let the job say overwrite: yes, then try again."
    case .tooLarge: "The file is larger than max-size allows: raise it, or cancel the job."
    case .expired: "The job's time is over: cancel it, or change expires."
    case .protocol: "The worker does not allow this kind of URL: see --protocols."
    case .killsWorker: "Workers died with this job: see their logs before you try again."
    }
  }

  /// `spoolrun retry …` for a shell; nil if the name has bytes that cannot be shown.
  package static func command(toRetry name: FileName, of spool: String) -> String? {
    let text = String(decoding: name.bytes, as: UTF8.self)
    guard Array(text.utf8) == name.bytes, name.display == text, escaped(spool) == spool else { return nil }
    return "spoolrun retry --spool \(quoted(spool)) -- \(quoted(text))"
  }

  private static func quoted(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF) || Array("-._/".utf8).contains(byte)
    }
    return isPlain && !text.isEmpty ? text : "'" + text.replacing("'", with: "'\\''") + "'"
  }
}
