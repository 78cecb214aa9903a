internal import CLinux
internal import Spool
internal import SystemPackage
internal import Transfer

extension URLParts {
  var isLoopback: Bool { host == "localhost" || host.begins(with: "127.") || host == "::1" || host == "[::1]" }
}

extension MirrorURL {
  /// The job's failure for one of a request. The other address family is tried only after a server was reached, so
  /// there is a network.
  func failure(_ failure: TransferFailure, _ manner: FetchPolicy.Manner) -> Failure {
    Failure(failure, isLoopback: parts.isLoopback || manner.family != .any)
  }
}

extension CurrentOutputRoot {
  /// Does what needs the directory of `output`, and names it if that fails.
  func writing<Value>(to output: OutputPath, _ body: () throws -> Value) throws -> Value {
    do { return try body() } catch let error as SpoolError {
      throw Failure(error, writingTo: try opened().path(of: output))
    }
  }

  func status(_ output: OutputPath) throws -> FileStatus? { try writing(to: output) { try opened().status(output) } }

  /// Whether another file at the output was changed after the last write to `data`.
  func isNewer(_ output: OutputPath, than data: FileStatus?) throws -> Bool {
    guard let data, let there = try status(output) else { return false }
    return !there.isSameFile(as: data) && there.wasChanged(after: data)
  }

  func removeTemporaries(beside output: OutputPath, of inodes: [UInt64]) throws {
    try writing(to: output) { try opened().removeTemporaries(beside: output, of: inodes) }
  }
}

extension Failure {
  init(_ error: SpoolError) {
    switch error.errno {
    case _ where error.isDiskFull: self.init(.diskFull, "\(error)")
    case _ where error.isTooLargeHere:
      let limit = spoolrun_file_size_limit()
      self.init(
        .tooLargeHere,
        limit > 0
          ? "\(error): a file may have at most \(limit) bytes (ulimit -f), or less on this file system"
          : "\(error): the file system does not support a file of this size",
        expected: limit > 0 ? "at most \(limit)" : nil)
    default: self.init(.io, "\(error)")
    }
  }

  /// The same for what was written to the directory of a payload, which a person knows by its path.
  init(_ error: SpoolError, writingTo directory: String) {
    self.init(error)
    let place = "cannot write to \(directory): \(error.errno)"
    switch error.errno {
    case .readOnlyFileSystem: (code, reason) = (.noOutput, "\(place): make its file system writable")
    case .permissionDenied, .notPermitted: (code, reason) = (.noOutput, "\(place): let the worker's user write to it")
    case .tooManySymbolicLinkLevels, .notDirectory, .isDirectory, .fileNameTooLong, .improperLink:
      (code, reason) = (.badOutput, "the output's path cannot be used: \(error)")
    case .invalidArgument: (code, reason) = (.badOutput, "\(directory): its file system takes no such name")
    case _ where error.isDiskFull: reason = "\(place): make space there"
    default: break
    }
  }

  init(_ failure: TransferFailure, isLoopback: Bool) {
    let code: FailureCode =
      switch failure.code {
      case .resolve: .resolve
      case .connect: .connect
      case .tls: .tls
      case .proxy: .proxy
      case .stalled: .stalled
      case .timeout: .timeout
      case .cut: .cut
      case .shortBody: .shortBody
      case .redirect: .redirect
      case .protocolNotEnabled: .protocol
      case .privateAddress: .privateAddress
      case .badURL: .malformed
      case .badResponse: .badResponse
      case .undecodable: .encoded
      case .outOfMemory, .local: .io
      }
    self.init(code, failure.message + (code == .encoded ? ": try `encoded: keep`" : ""))
    proxy = failure.proxy
    guard !isLoopback, code == .resolve || code == .connect else { return }
    // Not EHOSTUNREACH, which concerns one host only.
    let isUnreachable = [.networkUnreachable, .networkDown].contains(Errno(rawValue: failure.osErrno))
    let network = WorkerLoop.executor.surroundings
    if isUnreachable ? !network.hasRoute() : !network.hasAddress() {
      self.code = .noNetwork
      reason = "no network: \(reason)"
    }
  }
}

extension Response.Refusal {
  /// The HTTP status; for FTP and SFTP the one with the same meaning (spool(5), `http-NNN`).
  var status: Int {
    switch self {
    case .http(let status, _): status
    case .login: 401
    case .access: 403
    case .noSuchFile: 404
    case .unavailable: 503
    }
  }
}

extension Failure {
  /// - Parameter mayPass: whether a later attempt may get the file.
  init(_ refusal: Response.Refusal, from url: URLParts, mayPass: Bool) {
    func failure(_ reason: String) -> Failure {
      Failure(.http, "\(url.host) \(reason)", status: refusal.status, mayPass: mayPass)
    }
    switch refusal {
    case .http(401, let logins): self = failure("answered 401: \(Self.loginAdvice(url, logins))")
    case .http(let status, _):
      let reason = "answered \(status)\(Self.advice(status))"
      self = status < 400 ? Failure(.badResponse, "\(url.host) \(reason)") : failure(reason)
    case .login: self = failure("refused the login: write \(url.scheme)://USER:PASSWORD@HOST/… in the job")
    case .access: self = failure("denied access")
    case .noSuchFile: self = failure("has no such file")
    case .unavailable: self = failure("could not send the file")
    }
  }

  private static func loginAdvice(_ url: URLParts, _ schemes: [String]) -> String {
    let names = schemes.isEmpty ? "" : " by \(schemes.joined(separator: ", "))"
    let isOurs = schemes.isEmpty || schemes.contains { ["basic", "digest"].contains($0.lowercasedASCII) }
    if isOurs, url.hasLogin { return "it refuses the login\(names)" }
    let field = "header: Authorization: …"
    if !isOurs { return "it requires a login\(names): write \(field) in the job" }
    return "it requires a login\(names): `get` takes it by --netrc or --user; for a job write netrc: FILE in "
      + "defaults, or \(field) in the job"
  }

  private static func advice(_ status: Int) -> String {
    switch status {
    case 202: ": the file is not ready yet"
    case 304: ": it compared the file with a condition in the request"
    case 300...399: ", a redirect without a usable Location"
    case 407: ": it requires credentials"
    case 403: ": forbidden"
    case 404, 410: ": no such file"
    default: ""
    }
  }
}
