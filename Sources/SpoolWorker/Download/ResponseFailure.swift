internal import Spool
internal import Transfer

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
  /// The job's failure for a refusal.
  /// - Parameters:
  ///   - url: the job's URL.
  ///   - mayPass: whether a later attempt may get the file.
  init(_ refusal: Response.Refusal, from url: URLParts, mayPass: Bool) {
    func failure(_ reason: String, retryAfter: Int? = nil) -> Failure {
      Failure(.http, "\(url.host) \(reason)", status: refusal.status, retryAfter: retryAfter, mayPass: mayPass)
    }
    switch refusal {
    case .http(let status, let retryAfter):
      guard status >= 400 else {
        let hint = (300...399).contains(status) ? ", a redirect without a usable Location" : ""
        self.init(.badResponse, "\(url.host) answered \(status)\(hint)")
        return
      }
      self = failure("answered \(status)\(Self.advice(status))", retryAfter: retryAfter)
    case .login: self = failure("refused the login: write \(url.scheme)://USER:PASSWORD@HOST/… in the job")
    case .access: self = failure("denied access")
    case .noSuchFile: self = failure("has no such file")
    case .unavailable: self = failure("could not send the file")
    }
  }

  private static func advice(_ status: Int) -> String {
    switch status {
    case 401, 407: ": it requires credentials (header: Authorization: …)"
    case 403: ": forbidden"
    case 404, 410: ": no such file"
    default: ""
    }
  }
}
