// Drives bowline-credential-provider with the kubelet's own types: the configuration is read as the kubelet reads it, a
// request of its type goes to the plugin, and the response is read strictly.
//
//	kubelet CONFIG BIN-DIR IMAGE TOKEN IDENTITY
//
// The credentials are printed as JSON: registry, user name and password.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	configv1 "k8s.io/kubelet/config/v1"
	"k8s.io/kubelet/pkg/apis/credentialprovider"
	"k8s.io/kubelet/pkg/apis/credentialprovider/install"
	providerv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("usage: kubelet CONFIG BIN-DIR IMAGE TOKEN IDENTITY")
	}
	provider, err := configured(args[0])
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	response, err := provide(provider, args[1], args[2], args[3], args[4])
	if err != nil {
		return err
	}
	if response.CacheKeyType != credentialprovider.RegistryPluginCacheKeyType {
		return fmt.Errorf("cacheKeyType %q", response.CacheKeyType)
	}
	if response.CacheDuration == nil || response.CacheDuration.Duration <= 0 || response.CacheDuration.Hours() >= 1 {
		return fmt.Errorf("cacheDuration %v", response.CacheDuration)
	}
	for registry, auth := range response.Auth {
		return json.NewEncoder(os.Stdout).Encode(map[string]string{
			"registry": registry, "username": auth.Username, "password": auth.Password,
		})
	}
	return fmt.Errorf("no credentials")
}

// configured reads the one provider of the kubelet's configuration, and refuses unknown fields as the kubelet does.
func configured(path string) (*configv1.CredentialProvider, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := configv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := decoder.Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	config, ok := object.(*configv1.CredentialProviderConfig)
	if !ok || len(config.Providers) != 1 {
		return nil, fmt.Errorf("%T with %d providers", object, len(config.Providers))
	}
	provider := config.Providers[0]
	attributes := provider.TokenAttributes
	switch {
	case provider.DefaultCacheDuration == nil || len(provider.MatchImages) != 1:
		return nil, fmt.Errorf("defaultCacheDuration and matchImages are required")
	case attributes == nil || attributes.ServiceAccountTokenAudience == "" || attributes.RequireServiceAccount == nil:
		return nil, fmt.Errorf("tokenAttributes are required")
	case attributes.CacheType != configv1.ServiceAccountServiceAccountTokenCacheType:
		return nil, fmt.Errorf("cacheType %q", attributes.CacheType)
	}
	for _, key := range attributes.RequiredServiceAccountAnnotationKeys {
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			return nil, fmt.Errorf("annotation %q: %s", key, strings.Join(wrong, "; "))
		}
	}
	return &provider, nil
}

// provide calls the plugin as the kubelet does: encoded by version, with arguments and variables of the configuration.
func provide(provider *configv1.CredentialProvider, directory, image, token, identity string) (*credentialprovider.CredentialProviderResponse, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	version, err := schema.ParseGroupVersion(provider.APIVersion)
	if err != nil {
		return nil, err
	}
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok || version != providerv1.SchemeGroupVersion {
		return nil, fmt.Errorf("no encoder of %s", version)
	}
	request := &credentialprovider.CredentialProviderRequest{Image: image, ServiceAccountToken: token, ServiceAccountAnnotations: map[string]string{}}
	for _, key := range provider.TokenAttributes.RequiredServiceAccountAnnotationKeys {
		request.ServiceAccountAnnotations[key] = identity
	}
	input, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, version), request)
	if err != nil {
		return nil, err
	}
	command := exec.Command(filepath.Join(directory, provider.Name), provider.Args...)
	command.Env = []string{"PATH=/usr/bin:/bin"}
	command.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	object, _, err := codecs.UniversalDecoder(credentialprovider.SchemeGroupVersion).Decode(output, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("the response: %w", err)
	}
	response, ok := object.(*credentialprovider.CredentialProviderResponse)
	if !ok {
		return nil, fmt.Errorf("the response is a %T", object)
	}
	return response, nil
}
