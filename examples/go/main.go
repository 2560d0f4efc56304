// The smallest whole client in Go: one session from open to close, with a round of Casino Hold'em.
//
//	first-round-go HOST:PORT CA.pem CLIENT.pem CLIENT.key
//
// It plays in both ways of funding: an operator in participation mode buys first, a seamless one has each bet debited.
// A request without an answer is repeated with its request id, so it takes effect once. build.sh builds it.
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	pb "rgs.example/contract/rgs/v1"
)

const (
	timeout  = 10 * time.Second // of one attempt
	attempts = 6
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "first-round-go HOST:PORT CA.pem CLIENT.pem CLIENT.key")
		os.Exit(2)
	}
	connection, err := connect(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err == nil {
		defer connection.Close()
		err = play(pb.NewSessionServiceClient(connection), pb.NewPlayServiceClient(connection))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, explain(err))
		os.Exit(1)
	}
}

// connect makes a channel with mutual TLS: server and client show their certificates.
func connect(address, ca, certificate, key string) (*grpc.ClientConn, error) {
	authority, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return grpc.Dial(address, grpc.WithTransportCredentials(credentials.NewTLS(settings)))
}

// play opens a session, plays a round, and closes the session.
func play(sessions pb.SessionServiceClient, rounds pb.PlayServiceClient) error {
	var session *pb.SessionView
	open := &pb.OpenSessionRequest{
		RequestId: requestID(), Game: "casino-holdem", Player: "go-player", Currency: "EUR", OperatorReference: requestID(),
	}
	err := patiently(func(ctx context.Context) error {
		answer, err := sessions.OpenSession(ctx, open)
		session = answer.GetSession()
		return err
	})
	if err != nil {
		return err
	}
	id, isParticipation := session.SessionId, session.Funding == pb.Funding_FUNDING_PARTICIPATION
	if isParticipation {
		buy := &pb.BuyParticipationRequest{
			RequestId: requestID(), SessionId: id, PurchaseNo: session.NextPurchaseNo, AmountMinor: 5000,
		}
		err = patiently(func(ctx context.Context) error {
			answer, err := sessions.BuyParticipation(ctx, buy)
			session = answer.GetSession()
			return err
		})
		if err != nil {
			return err
		}
	}
	if err = playRound(rounds, session); err != nil {
		return err
	}
	if isParticipation {
		end := &pb.EndParticipationRequest{RequestId: requestID(), SessionId: id}
		err = patiently(func(ctx context.Context) error {
			_, err := sessions.EndParticipation(ctx, end)
			return err
		})
		if err != nil {
			return err
		}
	}
	closing := &pb.CloseSessionRequest{RequestId: requestID(), SessionId: id}
	return patiently(func(ctx context.Context) error {
		_, err := sessions.CloseSession(ctx, closing)
		return err
	})
}

// playRound stakes an ante of 1.00 EUR, calls, and prints the result.
func playRound(rounds pb.PlayServiceClient, session *pb.SessionView) error {
	var round *pb.RoundView
	start := &pb.StartRoundRequest{
		RequestId: requestID(), SessionId: session.SessionId, RoundNo: session.NextRoundNo,
		Bets: []*pb.Bet{{Bet: "ante", AmountMinor: 100}},
	}
	err := patiently(func(ctx context.Context) error {
		answer, err := rounds.StartRound(ctx, start)
		round = answer.GetRound()
		return err
	})
	if err != nil {
		return err
	}
	for round.Status == pb.RoundStatus_ROUND_STATUS_OPEN {
		act := &pb.ActRequest{
			RequestId: requestID(), SessionId: session.SessionId, RoundId: round.RoundId, RoundVersion: round.RoundVersion,
			Action: pb.Action_ACTION_CALL,
		}
		err = patiently(func(ctx context.Context) error {
			answer, err := rounds.Act(ctx, act)
			round = answer.GetRound()
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Printf("round %s: %v on %v against %v, %s\n",
		round.GameCode, round.HoleCards, round.Board, round.DealerCards, round.Outcome)
	fmt.Printf("staked %s, back %s\n", euro(round.StakedMinor), euro(round.ReturnedMinor))
	return nil
}

// patiently makes a call, and makes the same call again while there is no answer.
func patiently(call func(context.Context) error) error {
	pause := 100 * time.Millisecond
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		err := call(ctx)
		cancel()
		code := status.Code(err)
		if attempt == attempts || (code != codes.Unavailable && code != codes.DeadlineExceeded) {
			return err
		}
		fmt.Fprintf(os.Stderr, "again, with the same request id: %s\n", explain(err))
		time.Sleep(wait(err, pause))
		pause *= 2
	}
}

// wait is the longer of the pause and of what the server asks for.
func wait(err error, pause time.Duration) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			if asked := time.Duration(retry.GetRetryDelay().GetSeconds())*time.Second +
				time.Duration(retry.GetRetryDelay().GetNanos()); asked > pause {
				return asked
			}
		}
	}
	return pause
}

// explain is the message of an error with the stable reason, which docs/errors.md lists.
func explain(err error) string {
	refused, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	for _, detail := range refused.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return fmt.Sprintf("%s [%s %v]", refused.Message(), info.Reason, info.Metadata)
		}
	}
	return fmt.Sprintf("%s [%s]", refused.Message(), refused.Code())
}

// requestID is a new UUID; a repeat of the same request carries the same one.
func requestID() string {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		panic(errors.New("no randomness: " + err.Error()))
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// euro writes an amount: the amounts of the contract are cents here.
func euro(minor int64) string {
	return fmt.Sprintf("%d.%02d EUR", minor/100, minor%100)
}
