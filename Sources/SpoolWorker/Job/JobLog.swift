internal import Spool

extension JobEnvironment {
  /// Logs what happened to a job, for those who follow it.
  func inform(_ event: String, _ fields: Fields, of claim: Claim) {
    log(Event(event, .info, job: claim.job.fileName, fields))
  }
}
