internal import Glibc
package import Spool
internal import SystemPackage

/// Who has signed, as the program says that has checked it.
package struct Signer: Sendable, Equatable {
  /// The fingerprint of the key, the name of its file, or who may sign with it (ssh-keygen(1), ALLOWED SIGNERS).
  package let name: String
  /// nil where the signature does not say it.
  package let time: Timestamp?

  var mark: String { time.map { "\($0)" } ?? "yes" }

  /// - Throws: `rollback`
  func check(notBefore last: Timestamp?, _ reason: String) throws(Failure) {
    guard let last, let time, time < last else { return }
    throw Failure(.rollback, reason, expected: "signed at \(last) or later", found: "\(time)")
  }
}

enum SignatureForm: Equatable {
  case openPGP, minisign, signify, ssh

  /// What to say of bytes that are none.
  static let missing = "what should be the signature is none of OpenPGP, minisign, signify or SSH"

  /// - Returns: nil for what is none, such as a page.
  init?(_ bytes: [UInt8]) {
    func begins(_ text: String) -> Bool { bytes.starts(with: text.utf8) }
    if begins("untrusted comment:") {
      // minisign(1) signs a second comment, too.
      self = bytes.split(separator: 0x0A).count > 2 ? .minisign : .signify
    } else if begins("-----BEGIN SSH SIGNATURE-----") {
      self = .ssh
    } else if begins("-----BEGIN PGP SIGNATURE-----") || bytes.first.map({ $0 & 0x80 != 0 }) ?? false {
      // Each packet of OpenPGP begins with this bit (RFC 9580 section 4.2).
      self = .openPGP
    } else {
      return nil
    }
  }

  /// A text in the frame of its signature (RFC 9580 section 7).
  static func isInline(_ bytes: [UInt8]) -> Bool { bytes.starts(with: "-----BEGIN PGP SIGNED MESSAGE-----".utf8) }
}

/// Checks signatures by the programs that people trust, as child processes, with the spool's keys. All of it waits.
///
/// What is not understood counts as no signature: an exit status of 0 alone proves nothing, as gpgv(1) has it for keys
/// that are expired or revoked, too.
package struct SignatureCheck: Sendable {
  /// Bytes of a signature.
  package static let longest = 1 << 20
  /// Seconds for one program, which may have to read a payload.
  private static let timeLimit = 86_400

  private let spool: Spool
  private let keys: TrustedKeys
  private let stop: ChildStop
  /// A descriptor that the programs keep.
  private var file: Int32 = -1

  /// - Throws: `unknown-key` if the keys cannot be trusted; ``SpoolError``.
  package init(_ spool: Spool) throws { try self.init(spool, ChildStop()) }

  init(_ spool: Spool, _ stop: ChildStop) throws {
    (self.spool, self.stop) = (spool, stop)
    do { keys = try TrustedKeys(spool) } catch let defect as Defect { throw Failure(.unknownKey, defect.reason) }
  }

  /// Who has signed a file that only this user can write to.
  /// - Parameter descriptor: of the file, whose name may have changed.
  /// - Throws: ``Failure``, ``SpoolError``; ``JobStop/cancelled``.
  func signer(ofOpen descriptor: Int32, by signature: [UInt8]) throws -> Signer {
    var check = self
    check.file = descriptor
    return try check.signer(of: "/proc/self/fd/\(descriptor)", by: signature)
  }

  private func signer(of path: String, by signature: [UInt8]) throws -> Signer {
    guard signature.count <= Self.longest, let form = SignatureForm(signature) else {
      throw Failure(.badSignature, SignatureForm.missing)
    }
    let file = try ScratchFile(spool)
    defer { withExtendedLifetime(file) {} }
    try file.write(signature, at: 0)
    switch form {
    case .openPGP: return try openPGP([file.path, path], isInline: false)
    case .minisign, .signify: return try minisign(form, path, file.path)
    case .ssh: return try ssh(path, file.path)
    }
  }

  /// The bytes of a list that count, in a file, and who has signed them.
  /// - Parameter signature: nil if the list has it in itself: then only what is within it counts.
  package func signed(_ list: ScratchFile, _ signature: [UInt8]?) throws -> (list: ScratchFile, signer: Signer) {
    defer { withExtendedLifetime(list) {} }
    if let signature { return (list, try signer(of: list.path, by: signature)) }
    guard SignatureForm.isInline(try list.contents(limit: 64)) else {
      throw Failure(.unsigned, "the list does not begin with -----BEGIN PGP SIGNED MESSAGE-----")
    }
    let text = try ScratchFile(spool)
    return (text, try openPGP(["--output", text.path, list.path], isInline: true))
  }

  // MARK: the programs

  private func openPGP(_ arguments: [String], isInline: Bool) throws -> Signer {
    // Without any, gpgv would take a person's own.
    if keys.openPGP.isEmpty { throw Failure(.unknownKey, "the spool's keys has no NAME.gpg") }
    let rings = keys.openPGP.flatMap { ["--keyring", $0] }
    let options = ["--homedir", "/nonexistent", "--status-fd", "1"] + rings + arguments
    return try OpenPGPStatus(run(["gpgv"], of: "gpgv", options), isInline: isInline).signer()
  }

  private func minisign(_ form: SignatureForm, _ path: String, _ signature: String) throws -> Signer {
    let isMinisign = form == .minisign
    for key in keys.minisign {
      let arguments = ["-V", "-p", key, "-x", signature, "-m"]
      let outcome =
        isMinisign
        ? try run(["minisign"], of: "minisign", arguments + [path])
        : try run(["signify-openbsd", "signify"], of: "signify-openbsd", arguments + ["-"], reading: path)
      if outcome.isSuccess {
        let file = key.split(at: "/").last ?? ""
        return Signer(name: escaped(file), time: isMinisign ? Self.time(inComment: outcome.answer) : nil)
      }
      let isOfOther = outcome.output.says(isMinisign ? "key id" : "wrong key")
      if !isOfOther { throw Self.bad(outcome) }
    }
    throw Failure(.unknownKey, "no NAME.pub in the spool's keys made the signature")
  }

  /// As minisign(1) writes it of its own accord: `Trusted comment: timestamp:1795698609`. It is signed.
  private static func time(inComment output: [UInt8]) -> Timestamp? {
    let start = "Trusted comment: timestamp:"
    guard let line = output.split(separator: 0x0A).first(where: { $0.starts(with: start.utf8) }) else { return nil }
    return Timestamp(signed: String(decoding: line.dropFirst(start.utf8.count).prefix { $0 > 0x20 }, as: UTF8.self))
  }

  private func ssh(_ path: String, _ signature: String) throws -> Signer {
    guard let signers = keys.signers else { throw Failure(.unknownKey, "the spool's keys has no allowed_signers") }
    let (programs, package) = (["ssh-keygen"], "openssh-client")
    let files = ["-f", signers, "-s", signature]
    let found = try run(programs, of: package, ["-Y", "find-principals"] + files)
    let first = found.answer.split(separator: 0x0A).first.map { String(decoding: $0, as: UTF8.self) }
    guard found.isSuccess, let signer = first else {
      if found.output.says("expired") || found.output.says("not yet valid") {
        throw Failure(.expiredKey, "in allowed_signers: \(found.lastLines)")
      }
      if found.output.says("Couldn't parse") { throw Self.bad(found) }
      throw Failure(.unknownKey, "no line of allowed_signers is for the key that made the signature")
    }
    func verify(_ more: [String]) throws -> ChildProcess.Outcome {
      try run(programs, of: package, ["-Y", "verify", "-I", signer, "-n", "file"] + files + more, reading: path)
    }
    let outcome = try verify(keys.revoked.map { ["-r", $0] } ?? [])
    if outcome.isSuccess { return Signer(name: escaped(signer), time: nil) }
    if keys.revoked != nil, try verify([]).isSuccess {
      throw Failure(.revokedKey, "the key of \(escaped(signer)) is in revoked_keys")
    }
    throw Self.bad(outcome)
  }

  static func bad(_ outcome: ChildProcess.Outcome) -> Failure {
    // Of a text that it cannot write, gpgv says as well that it has no signature.
    guard let line = outcome.failedWrite else {
      return Failure(.badSignature, "the signature does not fit: \(outcome.lastLines)")
    }
    let isFull = [Errno.noSpace, .diskQuotaExceeded].contains { errno in
      let text = "\(errno)".utf8
      return line.suffix(text.count).elementsEqual(text)
    }
    return Failure(isFull ? .diskFull : .io, escaped(line.prefix(400)))
  }

  /// - Parameter input: what is signed, if that is to be its standard input.
  private func run(
    _ names: [String], of package: String, _ arguments: [String], reading input: String? = nil
  ) throws -> ChildProcess.Outcome {
    let command = [try Self.program(names, of: package)] + arguments
    let shell = input.map { ["/bin/sh", "-c", "file=$1; shift; exec \"$@\" <\"$file\"", "sh", $0] } ?? []
    let outcome: ChildProcess.Outcome
    do throws(Errno) {
      outcome = try ChildProcess(
        arguments: shell + command, environment: [.init("LC_ALL", "C")], seconds: Self.timeLimit, stop: stop,
        kept: spool.descriptor(for: spool.path(forChild: "keys")), keptFile: file, answers: true
      ).runHere()
    } catch {
      throw Failure(.noVerifier, "\(names[0]) cannot be run: \(error)")
    }
    switch outcome.end {
    case .exited: return outcome
    case .stopped: throw JobStop.cancelled
    case .signalled, .timedOut: throw Failure(.noVerifier, "\(names[0]) gave no verdict: \(outcome.description)")
    }
  }

  private static func program(_ names: [String], of package: String) throws(Failure) -> String {
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
    for name in names {
      for directory in path.split(at: ":") where directory.begins(with: "/") {
        if access("\(directory)/\(name)", X_OK) == 0 { return "\(directory)/\(name)" }
      }
    }
    throw Failure(.noVerifier, "\(names[0]) is missing, which checks such signatures: install the package \(package)")
  }
}

extension ChildProcess.Outcome {
  /// What it said, for a record.
  fileprivate var lastLines: String {
    let lines = output.split(separator: 0x0A).suffix(2).map { escaped($0.prefix(200)) }
    return lines.isEmpty ? description : lines.joined(separator: "; ")
  }

  /// What gpgv(1) said of the signed text that it was to write; nil if it wrote it.
  fileprivate var failedWrite: ArraySlice<UInt8>? {
    output.split(separator: 0x0A).first { line in
      ["writing to", "closing", "creating"].contains { line.starts(with: "gpgv: error \($0) '".utf8) }
    }
  }
}

extension [UInt8] { fileprivate func says(_ text: String) -> Bool { firstRange(of: Array(text.utf8)) != nil } }

/// What gpgv(1) says on its status descriptor (GnuPG, doc/DETAILS). Pure.
struct OpenPGPStatus {
  private let outcome: ChildProcess.Outcome
  private let isInline: Bool
  private let lines: [[Substring]]

  /// - Parameter isInline: whether the text was in the signature's frame.
  init(_ outcome: ChildProcess.Outcome, isInline: Bool) {
    (self.outcome, self.isInline) = (outcome, isInline)
    lines = outcome.answer.split(separator: 0x0A).compactMap { line in
      let start = "[GNUPG:] ".utf8
      guard line.starts(with: start) else { return nil }
      let words = String(decoding: line.dropFirst(start.count), as: UTF8.self).split(at: " ")
      return words.isEmpty ? nil : words
    }
  }

  private func all(_ word: String) -> [[Substring]] { lines.filter { $0[0] == word } }
  private func has(_ words: String...) -> Bool { lines.contains { words.contains(String($0[0])) } }

  /// Every signature by a key that is known has to be good, and at least one is.
  func signer() throws(Failure) -> Signer {
    // What was cut off may be that a key is revoked.
    if has("BADSIG") || outcome.answer.count > ChildProcess.outputLimit { throw SignatureCheck.bad(outcome) }
    if has("REVKEYSIG") { throw Failure(.revokedKey, "the key \(key("REVKEYSIG")) was revoked") }
    if has("EXPKEYSIG") { throw Failure(.expiredKey, "the key \(key("EXPKEYSIG")) has expired") }
    if has("EXPSIG") { throw Failure(.expiredKey, "the signature by the key \(key("EXPSIG")) has expired") }
    let (good, valid, unknown) = (all("GOODSIG"), all("VALIDSIG"), all("NO_PUBKEY"))
    if good.isEmpty, !unknown.isEmpty {
      throw Failure(.unknownKey, "the key \(key("NO_PUBKEY")) is in no NAME.gpg of the spool's keys")
    }
    // Signatures by further keys, which are not known, prove nothing and harm nothing.
    let isWhole =
      outcome.isSuccess
      || !isInline && outcome.end == .exited(2) && all("ERRSIG").count == unknown.count
        && !has("ERROR", "FAILURE", "NODATA", "UNEXPECTED")
    guard isWhole, !good.isEmpty, good.count == valid.count, let signature = valid.first, signature.count > 3 else {
      throw SignatureCheck.bad(outcome)
    }
    // The last field is the fingerprint of the primary key, by which people know it.
    let primary = signature.count > 10 ? signature[10] : signature[1]
    return Signer(name: escaped(primary), time: Timestamp(signed: signature[3]))
  }

  private func key(_ word: String) -> String {
    let id = all(word).first?.dropFirst().first
    return id.map { escaped($0) } ?? ""
  }
}

extension Timestamp {
  fileprivate init?(signed text: some StringProtocol) {
    // Records have years of four digits.
    guard let seconds = decimal(text).flatMap({ Int64(exactly: $0) }), seconds < 253_402_300_800 else { return nil }
    self.init(seconds: seconds)
  }
}
