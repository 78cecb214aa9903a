/// What all fetches of a group share.
struct GroupShare {
  /// What the rate limits still allow.
  let allowance: RateAllowance
  /// nil without cookies.
  let jar: CookieJar?
}
